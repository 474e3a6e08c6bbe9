"""Operation counts of products, held to what the reference implementation does."""

from __future__ import annotations

import numpy as np
import pytest

from bochner.rotations import Haar, Hadamard, MultiHadamard
from bochner.rotations._drawn_rotation import DrawnStages
from bochner.rotations._stages import Stage
from support.catalogue import ROTATIONS


class Counted:
    """A number that counts its additions and multiplications; the product with the integer one is a copy."""

    count = 0

    def _operate(self, other):
        Counted.count += type(other) is not int
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _operate


@pytest.mark.parametrize("d", (1, 2, 3, 8, 20))
@pytest.mark.parametrize("rotation", ROTATIONS, ids=repr)
def test_count_of_the_reference(rotation, d):
    drawn = rotation.sample(d, 1, rng=0)
    if not isinstance(drawn, DrawnStages):
        assert rotation.flops(d) == d * d + d * (d - 1)  # multiplications and additions of a matrix product
        return
    for back in (False, True):
        Counted.count = 0
        drawn.rows(np.array([[Counted()] * drawn.dim]), slice(None), back=back)
        assert rotation.flops(d) == Counted.count > 0


def test_order_of_the_paper():
    """HMD costs a few signs more than HD (OMC Section 6.1), both far less than a matrix."""
    hd, hmd, haar = (R.flops(1024) for R in (Hadamard(1), MultiHadamard(1), Haar()))
    assert hd == 1024 * 11 and hmd == 1024 * 20 and haar == 1024 * 2047


def test_a_stage_without_a_count():
    class Turn(Stage):
        def rows(self, x, blocks, *, back):
            return -x

    with pytest.raises(NotImplementedError, match=r"Turn: the number of operations .* implement flops\(dim\)"):
        Turn().flops(4)
    with pytest.raises(ValueError, match="d must be an integer of at least 1, got 0"):
        Hadamard().flops(0)
