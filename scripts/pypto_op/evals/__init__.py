"""What a team is worth: requests with hidden goldens, graders that are code, and the comparison of two results."""
