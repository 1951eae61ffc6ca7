"""What pypto offers, asked by name or by words: signature, constraints, dtypes, and an example that runs."""
