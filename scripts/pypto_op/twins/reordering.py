"""Puts an order of additions under a running golden, without touching its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from pypto_op.dispatch_mode import DispatchMode
from pypto_op.twins import differences, means, mixes, neighbours, orders, shifts
from pypto_op.twins.decompose import decompositions
from pypto_op.twins.orders import ORDERS, Order

GOLDEN = "golden"
"""The twin that is the golden as it stands."""

ROUNDED_OPERANDS = "rounded_operands"
"""The twin whose matmuls read their operands in the 16-bit dtype of the inputs, as a cube unit does."""

TWINS = (GOLDEN, *ORDERS, ROUNDED_OPERANDS)
"""Every twin, by name."""

OTHER_TIES = "other_ties"
"""The golden that takes the last of equal values first where its orders leave that open; it says nothing about rounding."""

OTHER_FORM = "other_form"
"""The same mathematics as another algorithm, which a golden's author may add (`twins.other_form`)."""

HONEST = (*TWINS, OTHER_FORM, OTHER_TIES)
"""Every way in which an honest kernel may run a golden."""

aten = torch.ops.aten

_IS_A_SUM = "_pypto_op_is_a_sum"
"""Attribute of a tensor that a sum has just made."""

_ROOT_OF = "_pypto_op_root_of"
"""Attribute of a tensor that a square root has just made: what it is the root of."""


class Reordered(DispatchMode):
    """While active, every sum, mean, matrix product and running sum of a golden adds up as one twin does.

    A product that torch fuses with the sum behind it (`add` with alpha, `addcmul`, `lerp`) is rounded by itself, as most kernels
    round it.

    Only floating types narrower than float64 change: the truth is computed in float64, and integers have no order.

    Args:
        twin: one of `HONEST`.
        storage: the dtype that `rounded_operands` rounds to; None or a wide one: nothing is rounded.
    """

    def __init__(self, twin: str, storage: torch.dtype | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if twin not in HONEST:
            raise ValueError(f"there is no twin {twin!r}")
        self._order: Order | None = ORDERS.get(twin)
        self._rewrites = _OTHER_TIES if twin == OTHER_TIES else _REWRITES
        self._ways: dict[int, tuple[bool, Callable[..., Any] | None, Callable[..., Any] | None]] = {}
        narrow = storage in (torch.float16, torch.bfloat16)
        self._storage = storage if twin == ROUNDED_OPERANDS and narrow else None
        self.orders_values = False  # an operator ran whose ties the twin `other_ties` resolves otherwise
        self._means = means.Means()
        self._shifts = shifts.Shifts()
        self._salt = list(ORDERS).index(twin) if twin in ORDERS else 0

    @property
    def changes_nothing(self) -> bool:
        """Whether the golden runs as it stands."""
        return self._order is None and self._storage is None and self._rewrites is _REWRITES

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one operator."""
        kwargs = kwargs or {}
        way = self._ways.get(id(func))  # torch keeps its operators, and hashes them in Python
        if way is None:
            way = self._ways[id(func)] = self._way_of(func)
        orders, rewrite, finer = way
        self.orders_values |= orders
        if (rewrite is None and finer is None) or not _narrow_float(args):
            return func(*args, **kwargs)
        if rewrite is not None:
            return rewrite(self, *args, **kwargs)
        assert finer is not None
        with self:
            return finer(*args, **kwargs)

    def _way_of(self, func: Any) -> tuple[bool, Callable[..., Any] | None, Callable[..., Any] | None]:
        """Return whether the twin `other_ties` changes an operator, what this twin puts in its place, and what takes it apart."""
        if self.changes_nothing:
            return func in _OTHER_TIES, None, None
        finer = decompositions().get(func) if self._rewrites is _REWRITES else None
        return func in _OTHER_TIES, self._rewrites.get(func), finer

    def fold(self, terms: torch.Tensor, dims: Sequence[int], keepdim: bool) -> torch.Tensor:
        """Return the sum of float32 `terms` over `dims`."""
        order = self._order
        if order is None:
            return terms.sum(dim=list(dims), keepdim=keepdim)

        def fold(side: torch.Tensor) -> torch.Tensor:
            return _folded(side, order, dims, keepdim)

        apart = differences.apart(terms, fold) if order.apart else None
        return fold(terms) if apart is None else apart

    def shared(self, total: torch.Tensor, count: float) -> torch.Tensor:
        """Return a sum over a number, as a kernel without a mean has it: times the reciprocal, which is rounded.

        That rounding is the same in each row, so where rows are summed later it does not average out.
        """
        if self._order is None:
            return total / count
        found = self.shifted(total * torch.tensor(1.0 / count, dtype=total.dtype), total, count)
        return self._means.keep(found, total, count)

    def quotient(self, total: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Return a sum over a tensor, which makes a mean where that counts."""
        found = aten.div.Tensor(total, counts)
        return found if self._order is None else self._means.keep(self.shifted(found, total, counts), total, counts)

    def summed(self, terms: torch.Tensor, dims: Sequence[int], keepdim: bool) -> torch.Tensor:
        """Return the sum of float32 `terms` over `dims`, of which a mean may become."""
        total = self.fold(terms, dims, keepdim)
        if self._order is not None and self._order.shifted:
            self._shifts.keep(total, terms, dims)
        return total

    def shifted(self, found: torch.Tensor, total: torch.Tensor, count: Any) -> torch.Tensor:
        """Return the mean `found`, total / count, as an order has it that takes a value off first (`twins.shifts`)."""
        order = self._order
        return self._shifts.mean(found, total, count, self.fold) if order is not None and order.shifted else found

    def product(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Return left @ right in the order, and with the operands, of this twin."""
        if self._storage is not None:
            left, right = (side.to(self._storage).to(side.dtype) for side in (left, right))
        dtype = torch.promote_types(left.dtype, right.dtype)
        left, right = _wide(left), _wide(right)
        result = torch.matmul(left, right) if self._order is None else orders.contract(left, right, self._order)
        return result.to(dtype)

    def regrouped(self, found: torch.Tensor, left: Any, right: Any) -> torch.Tensor:
        """Return a difference of two differences as this order groups it (`twins.differences`)."""
        return found if self._order is None else differences.regrouped(found, left, right, self._salt)

    def mixed(self, one: Any, two: Any) -> torch.Tensor | None:
        """Return the sum of two products that mix two values, as an order with one product has it (`twins.mixes`)."""
        return mixes.mixed(one, two, backwards=self._order.backwards) if self._order is not None else None

    def rounded(self, found: torch.Tensor, one: Any, two: Any) -> torch.Tensor:
        """Return the sum `found` of two tensors as a kernel may have it that rounds in other places (`twins.neighbours`)."""
        if self._order is None:
            return found
        return neighbours.neighbour(found, one, two, salt=self._salt)

    def made(self, found: torch.Tensor, operator: Callable[..., torch.Tensor], *operands: Any) -> torch.Tensor:
        """Return what an operator made of its operands, which two orders round otherwise where it goes into a sum.

        The others are what kernels mostly are, tile by tile and term by term: their own errors stay among the samples.
        """
        two_sums = self._order is not None and self._order.apart
        return neighbours.made(found, operator, *operands) if two_sums else found

    def by_exponential(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the hyperbolic tangent, which three orders have by an exponential: pypto has no other.

        Beside 0 such a form errs by a rounding of 1, which is far more than one of the result. Its own sum is the last step.
        Beside -1 the two forms err unlike, which shows where a golden adds 1, as in the slope of GELU. `sequential` has the
        worse one, since a tolerance is measured by it.
        """
        order = self._order
        if order is None or tensor.dtype != torch.float32:
            return aten.tanh.default(tensor)  # type: ignore[no-any-return]
        if order.backwards or order.by_terms:
            return 1.0 - 2.0 / (torch.exp(2.0 * tensor) + 1.0)
        return 2.0 / (1.0 + torch.exp(-2.0 * tensor)) - 1.0 if order.apart else aten.tanh.default(tensor)

    def by_logarithm(self, found: torch.Tensor, base: torch.Tensor, exponent: float) -> torch.Tensor:
        """Return `found`, base ** exponent, as two orders have it: by exp(exponent * log(base)), which is how devices raise.

        The logarithm is rounded to its own size, so far from 1 the power errs by several roundings, alike in a whole row.
        """
        if self._order is None or not self._order.apart or base.dtype != torch.float32:
            return found
        return torch.where(base > 0.0, torch.exp(exponent * torch.log(base)), found)

    def distance(self, found: torch.Tensor, taken: Any) -> torch.Tensor:
        """Return `found`, a value less `taken`, whose square a kernel may have that merges the means of tiles (`twins.means`)."""
        return found if self._order is None else self._means.distance(found, taken, self._salt)

    def running(self, terms: torch.Tensor, dim: int) -> torch.Tensor:
        """Return the running sums of float32 `terms` along `dim`."""
        if self._order is None or not terms.dim():
            return terms.cumsum(dim=dim)
        return orders.scan(terms.movedim(dim, -1).contiguous(), self._order).movedim(-1, dim).contiguous()


def _folded(terms: torch.Tensor, order: Order, dims: Sequence[int], keepdim: bool) -> torch.Tensor:
    kept = [d for d in range(terms.dim()) if d not in dims]
    count = 1
    for d in dims:
        count *= terms.shape[d]
    moved = terms.permute(*kept, *dims).reshape(*(terms.shape[d] for d in kept), count)
    result = orders.total(moved.contiguous(), order)
    if keepdim:
        result = result.reshape([1 if d in dims else n for d, n in enumerate(terms.shape)])
    return result


def _narrow_float(args: Sequence[Any]) -> bool:
    """Whether the first tensor that is no condition is of a floating type narrower than float64."""
    for value in args:
        if isinstance(value, torch.Tensor) and value.dtype != torch.bool:
            return value.is_floating_point() and value.dtype != torch.float64
    return False


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.dtype == torch.float64 else tensor.to(torch.float32)


def _dims(tensor: torch.Tensor, dim: Any) -> list[int]:
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(tensor.dim()))
    dims = [dim] if isinstance(dim, int) else list(dim)
    return sorted(d % tensor.dim() for d in dims) if tensor.dim() else []


def _sum(
    mode: Reordered, tensor: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> torch.Tensor:
    dims = _dims(tensor, dim)
    if not dims or not tensor.numel() or dtype == torch.float64:
        return aten.sum.dim_IntList(tensor, dim, keepdim, dtype=dtype)  # type: ignore[no-any-return]
    total = mode.summed(_wide(tensor), dims, keepdim).to(dtype or tensor.dtype)
    setattr(total, _IS_A_SUM, True)
    return total


def _plain_sum(mode: Reordered, tensor: torch.Tensor, dims: Any, *, output_dtype: torch.dtype | None = None) -> torch.Tensor:
    return _sum(mode, tensor, list(dims or range(tensor.dim())), dtype=output_dtype)


def _mean(
    mode: Reordered, tensor: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> torch.Tensor:
    dims = _dims(tensor, dim)
    if not dims or not tensor.numel() or dtype == torch.float64:
        return aten.mean.dim(tensor, dim, keepdim, dtype=dtype)  # type: ignore[no-any-return]
    count = 1
    for d in dims:
        count *= tensor.shape[d]
    return mode.shared(mode.summed(_wide(tensor), dims, keepdim), count).to(dtype or tensor.dtype)


def _divide(mode: Reordered, left: Any, right: Any) -> torch.Tensor:
    """Divide; a sum by a number as `Reordered.shared` does. Other quotients stay: floor shows where 6 * (1 / 3) falls below 2."""
    if getattr(left, _IS_A_SUM, False) and isinstance(right, (int, float)) and right:
        return mode.shared(left, right)
    if getattr(left, _IS_A_SUM, False) and isinstance(right, torch.Tensor):
        return mode.quotient(left, right)
    by = _divisor(mode, right)
    return mode.made(aten.div.Tensor(left, by), torch.div, left, by)


def _reciprocal(mode: Reordered, tensor: torch.Tensor) -> torch.Tensor:
    return aten.reciprocal.default(_divisor(mode, tensor))  # type: ignore[no-any-return]


def _divisor(mode: Reordered, divisor: Any) -> Any:
    """Return a divisor; a root is one that a kernel has as a power of -1/2, and that by a logarithm."""
    base = getattr(divisor, _ROOT_OF, None)
    return divisor if base is None else mode.by_logarithm(divisor, base, 0.5)


def _root(mode: Reordered, tensor: torch.Tensor) -> torch.Tensor:
    found = mode.made(aten.sqrt.default(tensor), torch.sqrt, tensor)
    setattr(found, _ROOT_OF, tensor)
    return found


def _inverse_root(mode: Reordered, tensor: torch.Tensor) -> torch.Tensor:
    return mode.by_logarithm(aten.rsqrt.default(tensor), tensor, -0.5)


def _tanh(mode: Reordered, tensor: torch.Tensor) -> torch.Tensor:
    return mode.by_exponential(tensor)


def _matmul(mode: Reordered, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    if not left.shape[-1] or not left.numel() or not right.numel():
        return torch.matmul(left, right)
    return mode.product(left, right)


def _cumsum(mode: Reordered, tensor: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    if not tensor.numel() or dtype == torch.float64:
        return torch.cumsum(tensor, dim, dtype=dtype)
    return mode.running(_wide(tensor), dim).to(dtype or tensor.dtype)


def _add(mode: Reordered, x: Any, y: Any, *, alpha: Any = 1) -> torch.Tensor:
    """Round the product before the sum, as a kernel with two operators does; torch fuses them into one rounding."""
    mixed = mode.mixed(x, y) if alpha == 1 else None
    term = y if alpha == 1 else y * alpha
    return mixed if mixed is not None else mode.rounded(aten.add.Tensor(x, term), x, term)


def _multiply(mode: Reordered, left: Any, right: Any) -> torch.Tensor:
    found = shifts.multiplied(means.product(mixes.product(left, right), left, right), left, right)
    return mode.made(found, torch.mul, left, right)


def _power(mode: Reordered, base: torch.Tensor, exponent: Any) -> torch.Tensor:
    found = shifts.powered(means.power(base, exponent))
    return found if float(exponent).is_integer() else mode.by_logarithm(found, base, float(exponent))


def _where(mode: Reordered, condition: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return means.chosen(condition, one, other)


def _subtract(mode: Reordered, x: Any, y: Any, *, alpha: Any = 1) -> torch.Tensor:
    term = y if alpha == 1 else y * alpha
    found = mode.rounded(aten.sub.Tensor(x, term), x, neighbours.negated(term))
    return differences.remembered(mode.distance(mode.regrouped(found, x, term), term), x, term)


def _add_product(mode: Reordered, x: torch.Tensor, one: torch.Tensor, other: torch.Tensor, *, value: Any = 1) -> torch.Tensor:
    product = mode.made(one * other, torch.mul, one, other)
    term = product if value == 1 else product * value
    return mode.rounded(x + term, x, term)


def _between(mode: Reordered, start: torch.Tensor, end: torch.Tensor, weight: Any) -> torch.Tensor:
    return torch.add(start, (end - start) * weight)


def _sort(mode: Reordered, tensor: torch.Tensor, dim: int = -1, descending: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    values, places = aten.sort.stable(tensor.flip(dim), stable=True, dim=dim, descending=descending)
    return values, tensor.shape[dim] - 1 - places


def _topk(
    mode: Reordered,
    tensor: torch.Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002 - torch's word
) -> tuple[torch.Tensor, torch.Tensor]:
    values, places = _sort(mode, tensor, dim, largest)
    return values.narrow(dim, 0, k), places.narrow(dim, 0, k)


_OTHER_TIES: dict[Any, Callable[..., Any]] = {aten.topk.default: _topk, aten.sort.default: _sort}

_REWRITES: dict[Any, Callable[..., Any]] = {
    aten.sum.default: _sum,
    aten.sum.dim_IntList: _sum,
    torch.ops.prims.sum.default: _plain_sum,  # what torch's own decompositions end in
    aten.mean.default: _mean,
    aten.mean.dim: _mean,
    aten.mm.default: _matmul,
    aten.bmm.default: _matmul,
    aten.cumsum.default: _cumsum,
    aten.div.Tensor: _divide,
    aten.sqrt.default: _root,
    aten.rsqrt.default: _inverse_root,
    aten.reciprocal.default: _reciprocal,
    aten.tanh.default: _tanh,
    aten.add.Tensor: _add,
    aten.mul.Tensor: _multiply,
    aten.pow.Tensor_Scalar: _power,
    aten.where.self: _where,
    aten.sub.Tensor: _subtract,
    aten.addcmul.default: _add_product,
    aten.lerp.Scalar: _between,
    aten.lerp.Tensor: _between,
}


def storage_of(values: Sequence[Any]) -> torch.dtype | None:
    """Return the narrowest floating dtype among the tensors of `values`, None when there is none."""
    found = [value.dtype for value in values if isinstance(value, torch.Tensor) and value.is_floating_point()]
    return min(found, key=lambda dtype: (dtype.itemsize, str(dtype)), default=None)
