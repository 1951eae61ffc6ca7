"""Public tasks and public Triton kernels through `pypto-op triton`: verdicts with reasons, and a league of mutants.

What is public is not kept here: every command takes the checkouts from the reader (`--source NAME=FOLDER`).
"""
