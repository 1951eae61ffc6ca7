"""The Triton path judges and times implementations of PyTorch tasks.

intake/  makes a public task small enough for the interpreter
static/  says what a file would do, without running it
run/     runs it beside the reference, and judges it
bench/   times what is right
commands.py  the command line
"""
