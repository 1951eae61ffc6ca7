"""What is right: what a case expects, the golden's answer, and whether an output is that."""
