"""PX11: tiles fit into the chip's memories, and lie in line."""

from __future__ import annotations

from pypto_op import hardware
from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, impl, with_cube_tiles, with_vec_tiles
from pypto_op_lint.facts.tiles import AXES, TileSetting, combinations, graph_dtypes, multiplied_dtypes
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

_HALF = "x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP16),\nout: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP16),\n"


class FitsTheChip(Rule):
    """A tile is larger than the memory it lies in, or out of line with the chip's blocks.

    What it does:
        Takes each tile of the kernel and of the helpers it calls whose values are known, and computes its bytes with the
        narrowest dtype that the kernel's tensors may have. Refuses a vector tile of which one operand alone exceeds UB (196608
        bytes); a cube tile that exceeds L0A or L0B (65536 each), L0C (131072, at 4 bytes an element), or with both operands
        L1 (524288); k or n of a cube tile that is no multiple of 16 elements (32 for one-byte elements); and a last
        vector entry above 1 that is no multiple of 32 bytes for the widest dtype.

    Why:
        `sim` cuts a tile down to the tensor at hand and does not look at L1 or at alignment. With small test shapes such a
        kernel passes there; on the device, with long ones, it is refused, reads the wrong addresses, or is slow. The sizes
        are those that the wheel's platform file states for Ascend 910B; the conditions on a cube tile are those of the
        manual's page of `set_cube_tile_shapes` for release 0.2.0; the 32 bytes are from its FAQ.

    Example:
        pypto.set_cube_tile_shapes([1024, 1024], [1024, 1024], [1024, 1024])

    Use instead:
        pypto.set_cube_tile_shapes([128, 128], [64, 256], [128, 128])

    Known limits:
        The tile counts as it is written, also where every tensor is smaller: then write the tensor's size. Several live
        operands, double buffers and what a single operation asks for are not counted.
    """

    id = "PX11"
    name = "fits-the-chip"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"tile_settings", "graph_sites", "kernels", "tensors", "calls"})
    MESSAGE = "a tile does not fit the chip"
    FIX_HINT = "halve k's L1 first, then the larger of m and n; of a vector tile halve the rows and keep the last entry"

    VALID = [
        Valid(with_vec_tiles("64, 512")),
        Valid(with_vec_tiles("48, 1024")),
        Valid(with_vec_tiles("64, 1024", parameters=_HALF)),
        Valid(with_vec_tiles("512, 1")),
        Valid(with_cube_tiles("[128, 128], [128, 128], [128, 128]")),
        Valid(with_cube_tiles("[8, 8], [128, 256], [128, 128]")),
        Valid(with_cube_tiles("[128, 128], [256, 512], [128, 128]", parameters=_HALF)),
        Valid(
            impl(
                "_tiles(64, 128)\n_tiles(1, 16384)\n" + BODY,
                before="def _tiles(rows, width):\n    pypto.set_vec_tile_shapes(rows, width)\n",
            )
        ),
    ]
    INVALID = [
        Invalid(with_vec_tiles("64, 1024")),
        Invalid(with_vec_tiles("1024, 1024", parameters=_HALF)),
        Invalid(with_vec_tiles("*TILE", before="TILE = (2 ** 8, 4 * 256)\n")),
        Invalid(with_vec_tiles("64, 5")),
        Invalid(with_vec_tiles("16, 100")),
        Invalid(with_vec_tiles("16, 8", parameters=_HALF)),
        Invalid(with_cube_tiles("[1024, 1024], [1024, 1024], [1024, 1024]")),
        Invalid(with_cube_tiles("[256, 256], [256, 256], [16, 16]", parameters=_HALF)),
        Invalid(with_cube_tiles("[16, 16], [32, 1024], [128, 1024]", parameters=_HALF)),
        Invalid(with_cube_tiles("[256, 256], [16, 16], [256, 256]", parameters=_HALF)),
        Invalid(with_cube_tiles("[16, 16], [24, 24], [16, 16]")),
        Invalid(with_cube_tiles("**CUBE", before="CUBE = dict(m=[512, 512], k=[512, 512], n=[64, 64])\n")),
        Invalid(impl("pypto.set_options(vec_tile_shapes=[1024, 1024])\n" + BODY)),
        Invalid(
            impl(
                "_tiles(64, 128)\n_tiles(512, 1024)\n" + BODY,
                before="def _tiles(rows, width):\n    pypto.set_vec_tile_shapes(rows, width)\n",
            )
        ),
    ]

    def check_file(self) -> None:
        """Compute every tile of the graph."""
        settings = self.facts.tile_settings
        if not settings:
            return
        everywhere = _bits(graph_dtypes(self.facts))
        operands = multiplied_dtypes(self.facts) if any(setting.cube for setting in settings) else None
        multiplied = _bits(operands) if operands else everywhere
        for setting in settings:
            faults = [*self._vector(setting, everywhere), *self._cube(setting, multiplied)]
            if faults:
                self.report(setting.site, "; ".join(dict.fromkeys(faults)))

    def _vector(self, setting: TileSetting, bits: tuple[int, int]) -> list[str]:
        if not setting.vector:
            return []
        ways = combinations(self.facts, setting.site.function, setting.vector)
        # An entry that is not known counts as 1 for the size, and as in line.
        tiles = [[entry[0] if entry else 1 for entry in way] for way in ways]
        return [fault for tile in tiles for fault in hardware.vector_faults(tile, *bits)]

    def _cube(self, setting: TileSetting, bits: tuple[int, int]) -> list[str]:
        if not setting.cube:
            return []
        ways = combinations(self.facts, setting.site.function, [setting.cube.get(axis) for axis in AXES])
        return [fault for m, k, n in ways for fault in hardware.cube_faults(m, k, n, *bits)]


def _bits(dtypes: set[str] | None) -> tuple[int, int]:
    """The narrowest and the widest element; of all that pypto has where nothing is known."""
    known = [hardware.DTYPE_BITS[name] for name in dtypes or () if name in hardware.DTYPE_BITS]
    return (min(known), max(known)) if known else (hardware.NARROWEST, hardware.WIDEST)
