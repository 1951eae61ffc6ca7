"""The wiring rules of module_interfaces.yaml (verifier seed, A.5.1); findings name the node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pypto_op.documents import shape_expr
from pypto_op.documents.schema import Finding
from pypto_op.errors import ContractError
from pypto_op.vocabulary import HEAVY_OPS

LEAST_SEEDS = LEAST_SHAPES = 2
"""What a composition is verified on, at least."""

Data = Mapping[str, Any]


def findings(data: Data) -> list[Finding]:
    """Return every broken wiring rule of a document that satisfies its schema."""
    return [finding for rule in RULES for finding in rule(data)]


def module_number(source: str) -> int:
    """Return j for `module_<j>`."""
    return int(source.removeprefix("module_"))


def _outputs(data: Data) -> dict[tuple[int, str], Data]:
    return {(m["id"], o["name"]): o for m in data["modules"] for o in m["outputs"]}


def _primary(data: Data) -> dict[str, Data]:
    return {p["name"]: p for p in data["primary_inputs"]}


def _each_input(data: Data) -> Iterator[tuple[str, Data, Data]]:
    for i, module in enumerate(data["modules"]):
        for n, item in enumerate(module["inputs"]):
            yield f"modules[{i}].inputs[{n}]", module, item


def _ids_count_from_one(data: Data) -> Iterator[Finding]:
    for i, module in enumerate(data["modules"]):
        if module["id"] != i + 1:
            yield Finding(f"modules[{i}].id", f"is {module['id']}: ids count 1, 2, ... in order, so {i + 1}")


def _names_are_unique(data: Data) -> Iterator[Finding]:
    lists = [("primary_inputs", data["primary_inputs"]), ("modules", data["modules"])]
    lists.append(("final_outputs", data["final_outputs"]))
    for i, module in enumerate(data["modules"]):
        lists.append((f"modules[{i}].inputs", module["inputs"]))
    for place, items in lists:
        seen: set[str] = set()
        for n, item in enumerate(items):
            if item["name"] in seen:
                yield Finding(f"{place}[{n}].name", f"{item['name']} occurs twice in {place}")
            seen.add(item["name"])


def _outputs_are_unique(data: Data) -> Iterator[Finding]:
    """Rule 4: no two outputs share (module id, name)."""
    seen: set[tuple[int, str]] = set()
    for i, module in enumerate(data["modules"]):
        for n, output in enumerate(module["outputs"]):
            key = (module["id"], output["name"])
            if key in seen:
                yield Finding(f"modules[{i}].outputs[{n}].name", f"module_{key[0]} already has an output {key[1]}")
            seen.add(key)


def _sources_exist(data: Data) -> Iterator[Finding]:
    """Rules 1 and 2: an input comes from a primary input, or from an output of an earlier module."""
    primary, outputs = _primary(data), _outputs(data)
    for place, module, item in _each_input(data):
        name, source = item["name"], item["source"]
        if source == "primary":
            if name not in primary:
                yield Finding(f"{place}.name", f"there is no primary input {name}")
            continue
        number = module_number(source)
        if number >= module["id"]:
            yield Finding(f"{place}.source", f"{source} does not come before module {module['id']}")
        elif (number, name) not in outputs:
            yield Finding(f"{place}.source", f"{source} has no output {name}")


def _consumers_agree(data: Data) -> Iterator[Finding]:
    """A consumer that states shape or dtype states its producer's."""
    primary, outputs = _primary(data), _outputs(data)
    for place, _, item in _each_input(data):
        source = item["source"]
        made = primary.get(item["name"]) if source == "primary" else outputs.get((module_number(source), item["name"]))
        if made is None:
            continue
        if "dtype" in item and item["dtype"] != made["dtype"]:
            yield Finding(f"{place}.dtype", f"is {item['dtype']}, {source} makes {made['dtype']}")
        if "shape" in item and _canonical(item["shape"]) != _canonical(made["shape"]):
            yield Finding(f"{place}.shape", f"is {_shown(item['shape'])}, {source} makes {_shown(made['shape'])}")


def _final_outputs_exist(data: Data) -> Iterator[Finding]:
    """Rule 3: a final output names an output of a module."""
    outputs, count = _outputs(data), len(data["modules"])
    for n, final in enumerate(data["final_outputs"]):
        number = module_number(final["source"])
        if number > count:
            yield Finding(f"final_outputs[{n}].source", f"{final['source']}: there are {count} modules")
        elif (number, final["name"]) not in outputs:
            yield Finding(f"final_outputs[{n}].source", f"{final['source']} has no output {final['name']}")


def _outputs_are_used(data: Data) -> Iterator[Finding]:
    used = {(module_number(i["source"]), i["name"]) for _, _, i in _each_input(data) if i["source"] != "primary"}
    used |= {(module_number(final["source"]), final["name"]) for final in data["final_outputs"]}
    for i, module in enumerate(data["modules"]):
        for n, output in enumerate(module["outputs"]):
            if (module["id"], output["name"]) not in used:
                yield Finding(f"modules[{i}].outputs[{n}].name", f"nobody uses {output['name']}")


def _shapes_parse(data: Data) -> Iterator[Finding]:
    """Rule 5: shapes parse, and know only symbols of the primary inputs."""
    known: set[str] = {p["name"] for p in data["primary_inputs"] if p["dtype"] in ("int", "int32", "int64")}
    for n, item in enumerate(data["primary_inputs"]):
        symbols, found = _symbols(item["shape"], f"primary_inputs[{n}].shape")
        known |= symbols
        yield from found
    for i, module in enumerate(data["modules"]):
        for kind in ("inputs", "outputs"):
            for n, item in enumerate(module[kind]):
                place = f"modules[{i}].{kind}[{n}].shape"
                symbols, found = _symbols(item.get("shape", []), place)
                yield from found
                for symbol in sorted(symbols - known):
                    yield Finding(place, f"{symbol} is no symbol of the primary inputs")
    for n, sizes in enumerate(data.get("composition_verification", {}).get("shapes", [])):
        yield from _sizes_fit(sizes, known, f"composition_verification.shapes[{n}]", data)


def _sizes_fit(sizes: Mapping[str, int], known: set[str], place: str, data: Data) -> Iterator[Finding]:
    needed: set[str] = set()
    for item in data["primary_inputs"]:
        needed |= _symbols(item["shape"], "")[0]
    for symbol in sorted(needed - set(sizes)):
        yield Finding(place, f"gives no size for {symbol}")
    for symbol in sorted(set(sizes) - known):
        yield Finding(f"{place}.{symbol}", f"{symbol} is no symbol of the primary inputs")


def _modules_have_a_backbone(data: Data) -> Iterator[Finding]:
    """Of several modules each has a heavy operation; an elementwise operator is one module and has none."""
    for i, module in enumerate(data["modules"] if len(data["modules"]) > 1 else []):
        if "heavy_ops" in module and not module["heavy_ops"]:
            yield Finding(f"modules[{i}].heavy_ops", "a module without a heavy op: merge it with its neighbour")


def _heavy_ops_are_heavy(data: Data) -> Iterator[Finding]:
    """R2 to R4: a light operation, `view` or `assemble` carries no module."""
    for i, module in enumerate(data["modules"]):
        for n, word in enumerate(module.get("heavy_ops", [])):
            if not is_heavy(word) and "TODO" not in word:
                allowed = ", ".join(HEAVY_OPS)
                place = f"modules[{i}].heavy_ops[{n}]"
                yield Finding(place, f"{word!r} is no heavy op: use one of {allowed}, also qualified (online_softmax)")


def is_heavy(word: str) -> bool:
    """Whether a word of `heavy_ops` is one of `HEAVY_OPS`, with or without a qualifier before or after it."""
    parts = word.strip().casefold().replace("-", "_").replace(" ", "_").split("_")
    kinds = [kind.split("_") for kind in HEAVY_OPS]
    return any(parts[: len(kind)] == kind or parts[-len(kind) :] == kind for kind in kinds)


def _composition_is_declared(data: Data) -> Iterator[Finding]:
    """Several modules are put together again on two seeds and two shapes at least."""
    if len(data["modules"]) < 2:
        return
    declared = data.get("composition_verification")
    if declared is None:
        yield Finding("composition_verification", f"is missing: {len(data['modules'])} modules need seeds, shapes, atol and rtol")
        return
    distinct = {tuple(sorted(sizes.items())) for sizes in declared["shapes"] if isinstance(sizes, Mapping)}
    for key, count, least in (("seeds", len(declared["seeds"]), LEAST_SEEDS), ("shapes", len(distinct), LEAST_SHAPES)):
        if count < least:
            yield Finding(f"composition_verification.{key}", f"has {count} of its own, needs {least} at least")


def _live_out_is_whole(data: Data) -> Iterator[Finding]:
    """A `live_out` that lacks an output of its own module is refused: no later boundary compares that output."""
    outputs = _outputs(data)
    for i, module in enumerate(data["modules"]):
        if "live_out" not in module:
            continue
        keys = {live_out_key(reference, module["id"], outputs) for reference in module["live_out"]}
        for output in module["outputs"]:
            if (module["id"], output["name"]) not in keys:
                yield Finding(
                    f"modules[{i}].live_out",
                    f"lacks {output['name']}, which {module['name']} makes and others use: it would never be compared; add it",
                )


def _live_out_exists(data: Data) -> Iterator[Finding]:
    """Whatever wrapper k returns was made by modules 1..k; the last wrapper returns the final outputs."""
    outputs = _outputs(data)
    for i, module in enumerate(data["modules"]):
        keys = []
        for n, reference in enumerate(module.get("live_out", [])):
            key = live_out_key(reference, module["id"], outputs)
            keys.append(key)
            if key is None:
                yield Finding(f"modules[{i}].live_out[{n}]", f"modules 1..{module['id']} make no {reference}")
        is_last = i == len(data["modules"]) - 1
        final = [(module_number(f["source"]), f["name"]) for f in data["final_outputs"]]
        if is_last and "live_out" in module and None not in keys and keys != final:
            yield Finding(f"modules[{i}].live_out", "the last module's differs from final_outputs")


def live_out_key(reference: str, k: int, outputs: Mapping[tuple[int, str], Any]) -> tuple[int, str] | None:
    """Return (module id, name) of a `live_out` entry of module k, the nearest producer first, or None."""
    source, _, name = reference.rpartition(".")
    if source:
        key = (module_number(source), name)
        return key if key in outputs and key[0] <= k else None
    return next(((j, name) for j in range(k, 0, -1) if (j, name) in outputs), None)


def _symbols(shape: list[Any], place: str) -> tuple[set[str], list[Finding]]:
    symbols: set[str] = set()
    found = []
    for n, dimension in enumerate(shape):
        try:
            symbols |= shape_expr.parse(dimension).symbols
        except ContractError as error:
            found.append(Finding(f"{place}[{n}]", error.problem))
    return symbols, found


def _canonical(shape: list[Any]) -> list[str]:
    try:
        return [shape_expr.parse(dimension).canonical() for dimension in shape]
    except ContractError:
        return [str(dimension) for dimension in shape]


def _shown(shape: list[Any]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


RULES: tuple[Callable[[Data], Iterator[Finding]], ...] = (
    _ids_count_from_one,
    _names_are_unique,
    _outputs_are_unique,
    _sources_exist,
    _consumers_agree,
    _final_outputs_exist,
    _outputs_are_used,
    _shapes_parse,
    _modules_have_a_backbone,
    _heavy_ops_are_heavy,
    _composition_is_declared,
    _live_out_exists,
    _live_out_is_whole,
)
