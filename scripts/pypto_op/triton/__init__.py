"""The Triton path: `static` says what a file would do, `run` what it did, `bench` how fast it was.

The three commands of the kernel-verifier contract (validate, verify, benchmark) live in `commands`.
"""
