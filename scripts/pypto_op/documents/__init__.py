"""One parser or generator per document of `custom/<op>/`; every loader checks a schema of `schemas/`."""
