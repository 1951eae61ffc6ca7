"""The bundle about itself: its agents and skills as data, and the check that every reference in them resolves."""
