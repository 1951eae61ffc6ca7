"""What a verdict is made of: records of runs, reasons, their summary, and the barrier that they pass."""
