"""The guard: decides before a tool runs whether it may touch what it is about to touch.

`policy` decides, `paths` knows what a path is, `roles` and `roles.yaml` who may do what, `frozen` what the
state machine has closed; `shell`, `words`, `programs`, `calls` and their `*_calls` and `python_*` neighbours find
out what a shell command would touch, `other_tools` what another server's tool would. `commands` holds the one
against the other.
"""
