"""What makes a verdict evidence: the account's key, the seal, the files that were loaded, and whether all that is still so."""
