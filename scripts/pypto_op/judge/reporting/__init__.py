"""What a verdict tells, to programs and to people."""
