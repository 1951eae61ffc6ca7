"""What fits on the chip: memory sizes and alignments, and the arithmetic that holds a tile against them.

`sim` cuts every tile down to the tensor at hand, so a tile that is too large for the chip passes there whenever the test shapes
are small, and L1 it does not look at at all. The linter holds the numbers in the text against these limits, the
candidate's process those that the kernel sets while it runs. Standard library only: the linter imports this.

Sources, for pypto 0.2.0 on Ascend 910B (A2, A3):

- sizes and speeds: `lib/configs/A2A3.ini` in the wheel (a test compares);
- what a cube tile must satisfy: the page of `pypto.set_cube_tile_shapes` at release 0.2.0;
- the last entry of a vector tile in multiples of 32 bytes: the FAQ of that release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Chip:
    """Sizes in bytes of the memories of one AI core, and of the block in which data moves."""

    ub: int
    l0a: int
    l0b: int
    l0c: int
    l1: int
    block: int
    fractal: int
    """Elements to which the cube unit rounds each axis of a tile up; twice as many for one-byte elements."""


CHIP = Chip(ub=196608, l0a=65536, l0b=65536, l0c=131072, l1=524288, block=32, fractal=16)


WIDE_PRODUCTS = 0.25
"""Assumed speed of products of 32-bit elements over those of 16 bits."""


@dataclass(frozen=True)
class Machine:
    """Speeds of a whole device, for the bound that physics sets; all as pypto's own configuration states them."""

    name: str  # the device
    # cube_cores, vector_cores: how many it has
    cube_cores: int
    vector_cores: int
    megahertz: int  # of both
    # memory_rate, cache_rate: bytes that a cube core moves in a cycle, from the device's memory and from its L2 cache
    memory_rate: int
    cache_rate: int
    cache_bytes: int  # size of L2
    cube_side: int  # the cube unit multiplies two 16-bit matrices of so many rows and columns in a cycle
    vector_lanes: int  # 16-bit elements that a vector core takes in a cycle; half as many of 32 bits

    @property
    def memory_bytes_per_us(self) -> float:
        """Bytes a microsecond from the device's memory."""
        return float(self.cube_cores * self.megahertz * self.memory_rate)

    @property
    def cache_bytes_per_us(self) -> float:
        """Bytes a microsecond from L2."""
        return float(self.cube_cores * self.megahertz * self.cache_rate)

    def cube_flop_per_us(self, bits: int) -> float:
        """Operations a microsecond in products of elements of so many bits.

        pypto's configuration states the 16-bit unit only. That 8 bits go twice as fast and 32 bits at `WIDE_PRODUCTS` is assumed:
        no public figure of the maker was found.
        """
        per_cycle = 2 * self.cube_side**3
        return self.cube_cores * self.megahertz * per_cycle * {8: 2.0, 16: 1.0}.get(bits, WIDE_PRODUCTS)

    @property
    def vector_flop_per_us(self) -> float:
        """Operations a microsecond on 32-bit elements."""
        return self.vector_cores * self.megahertz * self.vector_lanes / 2


MACHINE = Machine(
    name="Ascend 910B (A2, A3), as pypto 0.2.0 configures it",
    cube_cores=24,
    vector_cores=48,
    megahertz=1850,
    memory_rate=32,
    cache_rate=110,
    cache_bytes=201326592,
    cube_side=16,
    vector_lanes=128,
)
"""`lib/configs/A2A3.ini` in the wheel: SoCInfo, AICoreSpec, AICoreMemoryRates (a test compares)."""

DTYPE_BITS = {
    "INT4": 4, "HF4": 4, "FP4_E1M2X2": 8, "FP4_E2M1X2": 8, "INT8": 8, "UINT8": 8, "BOOL": 8, "FP8": 8, "FP8E4M3": 8,
    "FP8E5M2": 8, "FP8E8M0": 8, "HF8": 8, "INT16": 16, "UINT16": 16, "FP16": 16, "BF16": 16, "INT32": 32, "UINT32": 32,
    "FP32": 32, "INT64": 64, "UINT64": 64, "DOUBLE": 64,
}  # fmt: skip
"""Bits of an element, by the name that pypto writes after `DT_`."""
NARROWEST, WIDEST = min(DTYPE_BITS.values()), max(DTYPE_BITS.values())
_ACCUMULATOR_BITS = 32


def vector_faults(tile: Sequence[int], narrowest: int = NARROWEST, widest: int = WIDEST) -> list[str]:
    """Return what is wrong with `pypto.set_vec_tile_shapes(*tile)`, each with its arithmetic.

    Args:
        tile: one entry an axis.
        narrowest: bits of the narrowest element that it may hold; one operand's tile alone must fit into UB.
        widest: bits of the widest; only what is out of line for every element is reported.
    """
    faults = []
    size = _bytes(prod(tile), narrowest)
    if size > CHIP.ub:
        faults.append(f"UB: {_product(tile, narrowest)} = {size} > {CHIP.ub} bytes, for one operand alone")
    last = tile[-1] if tile else 0
    if last > 1 and last * widest % (8 * CHIP.block):
        step = 8 * CHIP.block // widest
        faults.append(
            f"alignment: the last entry is {last}, {_product([last], widest)} = {_bytes(last, widest)} bytes, "
            f"no multiple of {CHIP.block}; {-(-last // step) * step} is one (a tile may be wider than the tensor)"
        )
    return faults


def cube_faults(
    m: Sequence[int],
    k: Sequence[int],
    n: Sequence[int],
    narrowest: int = NARROWEST,
    widest: int = WIDEST,
    a_transposed: bool = False,
) -> list[str]:
    """Return what is wrong with `pypto.set_cube_tile_shapes(m, k, n)`, each with its arithmetic.

    Args:
        m: [L0, L1] tile of the rows of A; shorter where nothing is known.
        k: of the summed axis; a third value is the L1 tile of B.
        n: of the columns of B.
        narrowest: bits of the narrowest element that A or B may have.
        widest: bits of the widest.
        a_transposed: A lies in memory as [k, m].
    """
    step = CHIP.fractal * (2 if widest <= 8 else 1)
    faults = [
        f"alignment: {name} is {value}, no multiple of {step} elements"
        for word, values in (("k", k), ("n", n))
        for name, value in zip((f"{word}L0", f"{word}L1", f"{word}L1"), values, strict=False)
        if value % step
    ]
    if a_transposed and m and m[0] * widest % (8 * CHIP.block):
        size = _bytes(m[0], widest)
        faults.append(f"alignment: A is transposed and mL0 is {m[0]}: {size} bytes, no multiple of {CHIP.block}")
    rounded = [[-(-value // step) * step for value in values] for values in (m, k, n)]
    rows, inner, columns = rounded
    for memory, limit, names, sides, bits in (
        ("L0A", CHIP.l0a, "mL0 x kL0", (rows, inner), narrowest),
        ("L0B", CHIP.l0b, "kL0 x nL0", (inner, columns), narrowest),
        ("L0C", CHIP.l0c, "mL0 x nL0", (rows, columns), _ACCUMULATOR_BITS),
    ):
        if all(sides):
            factors = [side[0] for side in sides]
            size = _bytes(prod(factors), bits)
            if size > limit:
                faults.append(f"{memory}: {names} x bytes = {_product(factors, bits)} = {size} > {limit}")
    return [*faults, *_l1_faults(rows, inner, columns, narrowest)]


def _l1_faults(m: list[int], k: list[int], n: list[int], bits: int) -> list[str]:
    """A's tile and B's lie in L1 together; of one alone, where the other is not known."""
    terms = []
    if len(m) > 1 and len(k) > 1:
        terms.append((m[1], k[1]))
    if len(k) > 1 and len(n) > 1:
        terms.append((k[-1], n[1]))
    size = sum(_bytes(prod(term), bits) for term in terms)
    if size <= CHIP.l1:
        return []
    shown = " + ".join(_product(term, bits) for term in terms)
    return [f"L1: (mL1 x kL1 + kL1 x nL1) x bytes = {shown} = {size} > {CHIP.l1}"]


def _bytes(elements: int, bits: int) -> int:
    return -(-elements * bits // 8)


def _product(factors: Sequence[int], bits: int) -> str:
    width = "1/2" if bits == 4 else str(bits // 8)
    return " x ".join([*map(str, factors), width])
