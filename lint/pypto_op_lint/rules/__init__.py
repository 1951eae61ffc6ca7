"""One file per rule; `pypto_op_lint.registry` finds them by name."""
