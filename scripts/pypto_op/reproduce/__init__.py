"""The CPU reproducer (debugger seed): is a kernel's error one that any other order of additions makes, too?

script.py       writes `_debug/tolerance_analysis.py`: inputs of the case, the golden, its twins, their differences
drift.py        the failing case's error as the judge measured it, from a fresh report or from a run of its own
conclusion.py   kernel innocent or suspect, from the two
suite_patch.py  the milder case that is proposed when the kernel is innocent; nothing here ever applies it
analysis.py     all of it in order; commands.py: `pypto-op reproduce`
"""
