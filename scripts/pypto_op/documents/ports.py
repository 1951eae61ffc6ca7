"""The data classes of module_interfaces.yaml: ports, modules, the whole contract. `interfaces` reads the file into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pypto_op.documents import shape_expr, wiring
from pypto_op.errors import ContractError

PRIMARY = "primary"


@dataclass(frozen=True)
class Port:
    """A tensor or scalar that goes into or comes out of a module."""

    name: str  # its name
    source: str  # `primary` or `module_<j>`: who makes it
    shape: tuple[str, ...]  # one expression per dimension; () is a scalar
    dtype: str  # a word of `vocabulary.DTYPES`

    @property
    def module(self) -> int | None:
        """The id of the module that makes it; None for a primary input."""
        return None if self.source == PRIMARY else wiring.module_number(self.source)

    def sizes(self, symbols: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape for given sizes of the symbols.

        Raises:
            ContractError: a symbol has no size, or a dimension comes out negative or absurd.
        """
        return tuple(shape_expr.parse(dimension).value(symbols) for dimension in self.shape)


@dataclass(frozen=True)
class Module:
    """One module M_k."""

    id: int  # k, counted from 1
    name: str  # its name
    description: str  # one sentence, "" if there is none
    # inputs, outputs: its ports, shapes and dtypes resolved to their producer's
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    heavy_ops: tuple[str, ...] | None  # the backbone; None where the contract does not list it
    cu: float | None  # complexity units, or None
    live_out: tuple[str, ...] | None  # what wrapper k returns, as written; None for the default


@dataclass(frozen=True)
class Composition:
    """How cumulative golden N is compared with the operator's golden."""

    atol: float
    rtol: float
    seeds: tuple[int, ...]
    shapes: tuple[Mapping[str, int], ...]


@dataclass(frozen=True)
class Interfaces:
    """The whole contract."""

    op: str  # the operator
    primary_inputs: tuple[Port, ...]  # in the order of the golden's and every wrapper's parameters
    modules: tuple[Module, ...]  # M1..MN
    final_outputs: tuple[Port, ...]  # in the order of the golden's results
    composition: Composition | None  # how to verify the composition, or None
    # default of each scalar that stands in a shape (`k` of an output [T, k]), where one is known
    scalars: Mapping[str, int] = field(default_factory=dict)

    @property
    def total_modules(self) -> int:
        """N."""
        return len(self.modules)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols of the primary inputs' shapes, in order of first occurrence."""
        found: dict[str, None] = {}
        for port in self.primary_inputs:
            for dimension in port.shape:
                found.update(dict.fromkeys(sorted(shape_expr.parse(dimension).symbols)))
        return tuple(found)

    def module(self, k: int) -> Module:
        """Return module k.

        Raises:
            ContractError: there is none.
        """
        if not 1 <= k <= len(self.modules):
            raise ContractError(f"there is no M{k}: the operator has {len(self.modules)} module(s)")
        return self.modules[k - 1]

    def live_out(self, k: int) -> tuple[Port, ...]:
        """Return what cumulative wrapper k and cumulative golden k return, in order.

        What the contract says; otherwise the final outputs for the last module, and for an earlier one its
        own outputs followed by final outputs of the modules before it.
        """
        module = self.module(k)
        made = {(m.id, port.name): port for m in self.modules for port in m.outputs}
        if module.live_out is not None:
            keys = [wiring.live_out_key(reference, k, made) for reference in module.live_out]
            return tuple(made[key] for key in keys if key is not None)
        if k == len(self.modules):
            return self.final_outputs
        earlier = tuple(port for port in self.final_outputs if (port.module or 0) < k)
        return module.outputs + earlier

    def resolve_shapes(self, sizes: Mapping[str, int]) -> dict[tuple[str, str], tuple[int, ...]]:
        """Return (source, name) -> shape for every primary input and every module output.

        Args:
            sizes: symbol -> size, as in a suite case's `shape`.

        Raises:
            ContractError: a symbol has no size, or a dimension comes out negative or absurd.
        """
        known = {**self.scalars, **sizes}
        return {(port.source, port.name): port.sizes(known) for port in self._ports()}

    def sizes_of(self, case: Mapping[str, Any]) -> dict[str, int]:
        """Return what the symbols of all shapes stand for in a suite case: its `shape`, its scalars, their defaults."""
        sizes = {symbol: size for symbol, size in case["shape"].items() if isinstance(size, int)}
        own = {name: case[name] for name in self.scalars_in_shapes if type(case.get(name)) is int}
        return {**self.scalars, **sizes, **own}

    def misshapen(self, case: Mapping[str, Any], shapes: Sequence[Sequence[int]]) -> str:
        """Return which result of the golden has another shape in a suite case than the contract says; "" for none.

        Args:
            case: of the suite.
            shapes: those of the results, in order.

        Raises:
            ContractError: a symbol has no size, or a dimension comes out negative or absurd.
        """
        sizes = self.sizes_of(case)
        for port, shape in zip(self.final_outputs, shapes, strict=False):
            if tuple(shape) != port.sizes(sizes):
                return f"{port.name} has the shape {list(shape)}, the contract says {list(port.sizes(sizes))}"
        return ""

    @property
    def scalars_in_shapes(self) -> tuple[str, ...]:
        """The scalar inputs whose values shapes are made of."""
        used = {symbol for port in self._ports() for part in port.shape for symbol in shape_expr.parse(part).symbols}
        return tuple(port.name for port in self.primary_inputs if not port.shape and port.name in used)

    def with_scalars(self, defaults: Mapping[str, object]) -> Interfaces:
        """Return the contract with further defaults of the scalars that stand in shapes; defaults of other names are left out."""
        given = ((name, defaults.get(name)) for name in self.scalars_in_shapes)
        whole = {name: value for name, value in given if isinstance(value, int) and not isinstance(value, bool)}
        return replace(self, scalars={**self.scalars, **whole})

    def _ports(self) -> list[Port]:
        return [*self.primary_inputs, *(port for module in self.modules for port in module.outputs)]
