"""Benchmark of a verified implementation: `gate` (only what was verified), `statistics`, `roofline`, `benchmark`."""
