"""demo: exp of every element."""
