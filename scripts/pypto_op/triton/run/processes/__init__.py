"""The processes of a task and of an implementation: what runs in them, and the judge's ends of them."""
