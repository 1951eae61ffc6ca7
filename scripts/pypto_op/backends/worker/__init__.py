"""The code that runs in a worker, the process of a kernel or a golden, and in the processes above it.

    judge -> zygote -> warden -> worker

- `zygote`: imports torch, pypto and the calculator once, runs no code of anybody, and forks a warden per session;
- `warden`: encloses the session (`isolation`), outlives the worker, kills whatever the worker leaves running;
- `worker`: plays one role: `candidate` (the kernel under judgement) or `reference` (golden and input maker).

The judge's side of the same conversation is `pypto_op.backends.session`; how values travel is `backends.wire`.
"""
