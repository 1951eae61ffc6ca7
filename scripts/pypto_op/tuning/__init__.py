"""Makes a right kernel faster: finds its free choices, searches them, and keeps nothing wrong and nothing lucky."""
