"""The pypto-op linter: one libcst pass over an operator's files, one file per rule."""
