"""Inputs: as a task draws them, as bytes, and moved, so that they show what a task's own hide."""
