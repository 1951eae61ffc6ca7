"""Lanes of a load that a mask turns off and no `other` fills: Triton leaves them undefined, the interpreter puts zeros there.

Devices often do so too. A sum that needs these zeros is right by chance; with other values in these lanes it shows.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_FLOAT, _WHOLE = 12345.0, 99
"""What stands in such lanes where they are `marked`; both fit into the narrowest types."""


class Lanes:
    """Stands behind the interpreter's loads.

    Attributes:
        marked: such lanes hold something else than zeros.
        met: there were such lanes, in a load of floats or whole numbers, since `begin`.
    """

    def __init__(self) -> None:
        self.marked = self.met = False

    def install(self, builder: Any) -> None:
        """Wrap the function of the interpreter's builder that all loads come to."""
        original = builder.create_masked_load

        @functools.wraps(original)
        def load(builder: Any, pointers: Any, mask: Any, other: Any, *args: Any, **further: Any) -> Any:
            found = original(builder, pointers, mask, other, *args, **further)
            on = np.asarray(mask.data if other is None else True)  # the mask of a block pointer is an array
            if not on.all() and not pointers.get_element_ty().is_ptr():
                self.met = True
                if self.marked:
                    mark = _FLOAT if np.issubdtype(found.data.dtype, np.floating) else _WHOLE
                    found.data = np.where(np.broadcast_to(on, found.data.shape), found.data, found.data.dtype.type(mark))
            return found

        builder.create_masked_load = load
