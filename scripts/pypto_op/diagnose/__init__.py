"""From a log to the cause: known mistakes as data (`knowledge/`), and the search through them."""
