"""The guard: decides before a tool runs whether it may touch what it names.

`policy` decides, `paths` knows what a path is, `roles` and `roles.yaml` who may do what, `frozen` what the
state machine has closed. `shell` and `words` read a command's plain words, `calls` with `programs` and `git_calls`
say what they do, `code` what a program's text names. `commands` holds the one against the other; `other_tools` judges
another server's tool. What a program writes nobody predicts here: the record of changes (`changes`, `post_lint`) sees it.
"""
