"""eval/module_interfaces.yaml: the contract between modules, and what each cumulative wrapper returns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto_op.documents import decomposition, knobs, ragged, schema, wiring
from pypto_op.documents.golden import read_signature
from pypto_op.documents.ports import PRIMARY, Composition, Interfaces, Module, Port
from pypto_op.documents.reading import read_yaml
from pypto_op.documents.schema import Finding
from pypto_op.errors import ContractError
from pypto_op.workspace import OpWorkspace

__all__ = ["PRIMARY", "Composition", "Interfaces", "Module", "Port", "build", "check", "check_signature", "load"]


def load(path: Path | str) -> Interfaces:
    """Read the contract.

    Raises:
        ContractError: unreadable, the schema or a wiring rule is broken, or it is another operator's; the message names the node.
    """
    path = Path(path)
    data = read_yaml(path)
    schema.check(data, "module_interfaces", file=path)
    schema.raise_first(schema.left_to_do(data) or [*_broken(data), *schema.of_another(data["op"], path, "op")], file=path)
    return build(data)


def check(path: Path | str) -> list[Finding]:
    """Return everything that is wrong with the contract."""
    path = Path(path).resolve()
    try:
        data = read_yaml(path)
    except ContractError as error:
        return [Finding.of(error)]
    found = schema.findings(data, "module_interfaces")
    if found:
        told = {finding.where for finding in found}
        return found + [finding for finding in schema.left_to_do(data) if finding.where not in told]
    found = [*_broken(data), *schema.of_another(data["op"], path, "op")]
    if not found:
        found = _against_the_others(data, path.parent.parent)
    return found + schema.left_to_do(data)


def _broken(data: Mapping[str, Any]) -> list[Finding]:
    """Return what is wrong beyond the schema: wiring, and inputs that a case has another use for."""
    return [*wiring.findings(data), *knobs.reserved(item["name"] for item in data["primary_inputs"])]


def _against_the_others(data: Mapping[str, Any], folder: Path) -> list[Finding]:
    """Hold the contract to DESIGN.md and SPEC.md of the same operator, where they are."""
    made = build(data)
    return [*decomposition.findings(data, made, folder / "DESIGN.md"), *ragged.findings(made, folder / "SPEC.md")]


def check_signature(interfaces: Interfaces, ws: OpWorkspace) -> list[Finding]:
    """Return where the contract differs from the golden: parameters, their order, the number of results."""
    if not ws.golden.is_file():
        return []
    try:
        signature = read_signature(ws.golden)
    except ContractError as error:
        return [Finding("primary_inputs", f"the golden cannot be read: {error.one_line()}")]
    found = []
    names = tuple(port.name for port in interfaces.primary_inputs)
    if names != signature.parameters:
        golden = ", ".join(signature.parameters)
        found.append(Finding("primary_inputs", f"are {', '.join(names)}; the golden takes {golden}"))
    count = len(interfaces.final_outputs)
    if signature.returns not in (None, count):
        found.append(Finding("final_outputs", f"has {count}; the golden returns {signature.returns}"))
    return found


def build(data: Mapping[str, Any]) -> Interfaces:
    """Return the contract of data that satisfies schema and wiring rules."""
    primary = tuple(_port(item, PRIMARY) for item in data["primary_inputs"])
    made = {(PRIMARY, port.name): port for port in primary}
    modules = []
    for item in data["modules"]:
        source = f"module_{item['id']}"
        outputs = tuple(_port(output, source) for output in item["outputs"])
        inputs = tuple(made[entry["source"], entry["name"]] for entry in item["inputs"])
        made.update({(source, port.name): port for port in outputs})
        modules.append(_module(item, inputs, outputs))
    composition = data.get("composition_verification")
    made_of = Interfaces(
        op=data["op"],
        primary_inputs=primary,
        modules=tuple(modules),
        final_outputs=tuple(made[final["source"], final["name"]] for final in data["final_outputs"]),
        composition=None if composition is None else _composition(composition),
    )
    return made_of.with_scalars({item["name"]: item.get("default") for item in data["primary_inputs"]})


def _port(item: Mapping[str, Any], source: str) -> Port:
    shape = tuple(str(dimension) for dimension in item["shape"])
    return Port(item["name"], source, shape, item["dtype"])


def _module(item: Mapping[str, Any], inputs: tuple[Port, ...], outputs: tuple[Port, ...]) -> Module:
    return Module(
        id=item["id"],
        name=item["name"],
        description=item.get("description", ""),
        inputs=inputs,
        outputs=outputs,
        heavy_ops=tuple(item["heavy_ops"]) if "heavy_ops" in item else None,
        cu=item.get("cu"),
        live_out=tuple(item["live_out"]) if "live_out" in item else None,
    )


def _composition(item: Mapping[str, Any]) -> Composition:
    return Composition(item["atol"], item["rtol"], tuple(item["seeds"]), tuple(item["shapes"]))
