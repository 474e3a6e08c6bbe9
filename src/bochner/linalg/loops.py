"""The inner loops of this library: compiled by Numba where it can be imported, and otherwise in NumPy.

Both have the same names and arguments, and the same results up to rounding.  Numba is a dependency, but nothing needs it to
run: where it cannot be installed (a new version of Python, a browser, an unusual processor), everything works, more slowly.
"""

from __future__ import annotations

try:
    from .compiled.blocks import select_for_blocks
    from .compiled.codes import append_codes
    from .compiled.coding import attend_coded, decode_coded
    from .compiled.decoding import decode, decode_near
    from .compiled.lanes import (
        add_to,
        givens_level,
        givens_walk,
        load,
        reflect,
        room_for,
        scale_lines,
        signed_walsh,
        simplex_lines,
        simplex_lines_adjoint,
        store_scaled,
        walsh_levels,
    )
    from .compiled.points import interpolate, manhattan, row_products, signed_sums, spread, squared
    from .compiled.waves import LIMIT32, LIMIT64, waves32, waves64

    ENGINE = "Numba"
except ImportError:  # of numba or llvmlite
    from .plain_coding import append_codes, attend_coded, decode, decode_coded, decode_near, select_for_blocks
    from .plain_lanes import (
        LIMIT32,
        LIMIT64,
        add_to,
        givens_level,
        givens_walk,
        interpolate,
        load,
        manhattan,
        reflect,
        room_for,
        row_products,
        scale_lines,
        signed_sums,
        signed_walsh,
        simplex_lines,
        simplex_lines_adjoint,
        spread,
        squared,
        store_scaled,
        walsh_levels,
        waves32,
        waves64,
    )

    ENGINE = "NumPy"

__all__ = [
    "ENGINE",
    "LIMIT32",
    "LIMIT64",
    "add_to",
    "append_codes",
    "attend_coded",
    "decode",
    "decode_coded",
    "decode_near",
    "givens_level",
    "givens_walk",
    "interpolate",
    "load",
    "manhattan",
    "reflect",
    "room_for",
    "row_products",
    "scale_lines",
    "select_for_blocks",
    "signed_sums",
    "signed_walsh",
    "simplex_lines",
    "simplex_lines_adjoint",
    "spread",
    "squared",
    "store_scaled",
    "walsh_levels",
    "waves32",
    "waves64",
]
