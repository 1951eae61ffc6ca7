#!/usr/bin/env python3
"""Static check of a Triton implementation. The work is done in `pypto_op.triton`; `_launch` finds it."""

from _launch import run

if __name__ == "__main__":
    run("validate")
