"""Verification by running: the task and the candidate in processes of their own, the comparison here.

`sessions` starts both, `task` and `candidate` are what runs inside, `gate` and `launches` watch the candidate, `verify`
decides, `results` writes. Everything crosses the process boundary as bytes (`packing`).
"""
