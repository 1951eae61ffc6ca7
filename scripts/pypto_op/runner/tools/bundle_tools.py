"""The tools of the bundle's MCP server, called in this process: the same functions, schemas and answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pypto_op.bundle.agents import MCP_PREFIX
from pypto_op.runner.tools.table import CallFailed, Place, Tool

_WITHOUT_EFFECTS = {"lint", "diagnose_error", "pypto_api", "verify"}
"""May be repeated: they look something up, or judge again. What is not here is not repeated unseen."""


def bundle_tools() -> list[Tool]:
    """Return the server's tools, under the names of the agents' pages."""
    from pypto_op.mcp.server import server

    return [
        Tool(
            MCP_PREFIX + row.name,
            row.description or "",
            _closed(row.input_schema),
            _caller(row.name),
            effects=row.name not in _WITHOUT_EFFECTS,
        )
        for row in asyncio.run(server.list_tools())
    ]


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that refuses unknown arguments: a typing mistake would be lost otherwise."""
    return {**schema, "additionalProperties": False}


def _caller(name: str) -> Any:
    def work(place: Place, given: dict[str, Any]) -> str:
        from mcp.server.mcpserver.exceptions import ToolError

        from pypto_op.mcp.server import server

        try:
            result: Any = asyncio.run(server.call_tool(name, given))
        except ToolError as error:
            why = f": {error.__cause__}" if error.__cause__ else ""  # its own words name the tool only
            raise CallFailed(" ".join(f"{error}{why}".split())[:500]) from None
        return json.dumps(result.structured_content)

    return work
