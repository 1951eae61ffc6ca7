"""What is seen, and refused, while an implementation runs: launches, memory, reads, races, what it replaced."""
