"""How two tensors are measured against each other; `pypto_op.compare` is the way in."""
