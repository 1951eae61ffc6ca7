"""The linter as a language server (LSP over stdin and stdout): findings while somebody types, repairs as quick fixes."""
