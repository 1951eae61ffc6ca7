"""The figures by which the reproducer describes a difference between two outputs."""

METRICS = ("name", "max_abs_diff", "max_rel_diff", "mean_diff", "rel_to_scale", "max_violation", "fail_fraction")
"""What is told of each output: sizes of differences, never values."""
