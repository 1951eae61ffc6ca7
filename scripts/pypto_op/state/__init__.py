"""The state machine, its journal, the evidence and the gates: the referee of the workflow."""
