"""What is verified, where it runs, how long it may take, and where its results lie."""
