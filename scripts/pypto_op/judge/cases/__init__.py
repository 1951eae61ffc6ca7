"""What is judged: the operator's documents, its suite, the inputs of each case and what they vary."""
