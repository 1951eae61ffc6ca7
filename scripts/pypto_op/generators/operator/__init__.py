"""What is known of an operator before it has a suite: its documents, its golden's source, what its inputs mean."""
