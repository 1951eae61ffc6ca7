"""What an import says of itself: which numbers it changed, and what a verdict on the smaller task leaves untested."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

NAME = "IMPORT.md"
_OFFSETS = 1 << 31


def untested(result: dict[str, Any], *, one_sign: bool, draws: bool, gpu: bool, smaller: str) -> list[str]:
    """Return sentences on what no verdict of this folder shows."""
    said: list[str] = []
    if draws:
        said.append(
            "Everything: the task's forward draws random numbers, which an implementation's forward may not, so no kernel can be "
            "verified against it. Draw them in get_inputs and hand them over."
        )
    before, here = result["elements"]["public"], result["largest_input_or_output"]
    if result["numbers"]:
        largest = max(result["numbers"], key=lambda number: number["public"])
        said.append(
            f"Sizes above those of this folder: a loop or a grid that only more than {here} elements fill, "
            f"and rounding errors of sums over longer axes. The public task goes up to {largest['name']} = {largest['public']}."
        )
        said.append("Kernels that take the public sizes for granted (a block of the public width without a mask) may fail here.")
        if before >= _OFFSETS:
            said.append(f"Offsets beyond 32 bits: the public task's largest tensor has {before} elements.")
    if not gpu and not result["small_enough"]:
        said.append(f"The task could not be made as small as wished, so the interpreter may take long; {smaller}.")
    if one_sign:
        said.append(
            "Inputs of the other sign: every float input of the task has one sign, so a kernel wrong for the other passes."
        )
    if result["cases"] == 1:
        said.append("Other shapes: the task has one case.")
    said.append(
        "The reference was not run with these sizes: that is done where the GPU is."
        if gpu
        else "Alignment, shortage of registers or shared memory, and speed: the interpreter sees none of them."
    )
    return said


def smaller(data: list[Path], *, settable: bool) -> str:
    """Return how a user makes the task smaller: its numbers can be set, or its sizes stand in a data file, or in its code."""
    if settable:
        return "--set NAME=N gives it a smaller number"
    return f"its sizes stand in {data[0].name}: write smaller ones there" if data else "write smaller sizes into its code"


def render(result: dict[str, Any]) -> str:
    """Return the folder's page."""
    lines = [f"# {result['op_name']}", "", f"Imported from `{result['source']}` by `pypto-op triton import`.", ""]
    if result["numbers"]:
        lines += ["| number | public task | here |", "|---|---|---|"]
        lines += [f"| {number['name']} | {number['public']} | {number['here']} |" for number in result["numbers"]]
    else:
        lines += ["Every number is that of the public task."]
    lines += ["", "| argument | public task | here |", "|---|---|---|"]
    lines += [f"| {given['name']} | {shape(given['public'])} | {shape(given['here'])} |" for given in result["arguments"]]
    lines += ["", "## What a verdict here leaves untested", "", *(f"- {line}" for line in result["untested"]), ""]
    lines += [
        "## Next",
        "",
        f"Write `{result['implementation']}` with a class `ModelNew`, then",
        "",
        *_commands(result, "    "),
        "",
    ]
    return "\n".join(lines)


def told(result: dict[str, Any]) -> list[str]:
    """Return what the command prints."""
    lines = [f"{result['folder']}: {result['task']} and {NAME}"]
    lines += [f"  {number['name']}: {number['public']} -> {number['here']}" for number in result["numbers"]]
    for given in result["arguments"]:
        before, after = shape(given["public"]), shape(given["here"])
        lines.append(f"  {given['name']}: {after}" + (f" (public task: {before})" if before != after else ""))
    lines += ["untested by a verdict here:", *(f"  - {line}" for line in result["untested"])]
    lines += [f"next: write {result['folder']}/{result['implementation']}, then", *_commands(result, "  ", result["folder"])]
    return lines


def shape(given: dict[str, Any]) -> str:
    """Return one argument in a few words."""
    if given["type"] == "tensor":
        return f"{'x'.join(map(str, given['shape'])) or 'scalar'} {given['dtype'].removeprefix('torch.')}"
    return str(given.get("value", given.get("repr", given["type"])))


def _commands(result: dict[str, Any], indent: str, folder: str = ".") -> list[str]:
    implementation = f"{folder}/{result['implementation']}"
    return [
        f"{indent}pypto-op triton validate {shlex.quote(implementation)}",
        f"{indent}pypto-op triton verify --op_name {result['op_name']} --verify_dir {shlex.quote(folder)}",
    ]
