"""What is right: numbers beside a reference's, and where they come from."""
