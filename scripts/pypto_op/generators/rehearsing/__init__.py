"""Cases tried on the golden before anybody sees them: what they show, and whether they refuse a right kernel."""
