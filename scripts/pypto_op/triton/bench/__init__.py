"""The benchmark of a Triton implementation, which times only what has a PASS.

gate.py       refuses what was not verified
rounds.py     the timed calls, reference and implementation in turns
figures.py    medians, intervals, ratios
roofline.py   the least time that a device allows
benchmark.py  all of it in order
"""
