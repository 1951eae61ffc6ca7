"""Whether an operator's suite is fit to judge, before any kernel exists."""
