"""The report a person is shown: one HTML file, nothing fetched, nothing beside it."""
