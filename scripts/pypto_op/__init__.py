"""pypto-op: the library behind the commands that agents and people call.

Importing the package imports nothing heavy: torch and pypto are loaded only inside the back ends.
"""

__version__ = "0.1.0"
