"""Puts the bundle into a user's workspace, for Claude Code and OpenCode, and takes it out again without a trace."""
