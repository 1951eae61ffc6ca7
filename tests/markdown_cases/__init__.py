"""Test material as Markdown that people read: pages of cases, each a small edit of a base that stands once."""
