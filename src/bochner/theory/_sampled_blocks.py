"""Errors of positive features with rows whose directions follow their lengths: simplex+ and any other geometry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._validation import check_count
from ._pairs import check_squares

_NODES = 16  # Chebyshev nodes of an error that sampling knows to a few per cent
_FAR = 60.0
"""Squared norm of x + y from which on pairs of rows contribute less than rounding."""


class SampledBlocks(NamedTuple):
    """Blocks of coupled rows: many sampled sets of lengths, and the squared norms of sums of two rows of each.

    Attributes
    ----------
    n_blocks : int
        Number of such blocks among all rows.
    lengths : array of shape (samples, r)
        Lengths of the rows.
    sums : array of shape (samples, r (r - 1) / 2)
        Squared norms of sums of two rows.
    """

    n_blocks: int
    lengths: np.ndarray
    sums: np.ndarray


def sampled_positive_log_relative_mse(plus: Any, m: int, d: int, blocks: Sequence[SampledBlocks]) -> np.ndarray:
    r"""Logarithm of the relative mean squared error of positive features, for any geometry under a Haar rotation.

    Parameters
    ----------
    plus : array
        :math:`|x + y|^2`.
    m : int
        Number of rows.
    d : int
        Dimension in which they are drawn.
    blocks : sequence of SampledBlocks
        The blocks of the rows.

    Returns
    -------
    ndarray
        Logarithm of :math:`\mathrm{MSE}/k^2`.

    Notes
    -----
    Given the lengths, a pair of rows has
    :math:`E e^{(w_i+w_j)\cdot v} = {}_0F_1(; \frac d2; \frac14|w_i+w_j|^2|v|^2)` exactly.  The mean over the lengths is that
    of the sample, with known means as control variates: of :math:`\ell^2`, :math:`\ell^4`,
    :math:`{}_0F_1(\frac d2; \frac14\ell^2|v|^2)` and :math:`{}_0F_1(\frac d2; \ell^2|v|^2)`.  If rows sum to zero, these
    determine the leading term.  Where no closed form exists, as for simplex+, this is accurate within a few per cent, and
    deterministic.
    """
    V, m = (
        check_squares("sampled_positive_log_relative_mse", "plus", plus),
        check_count("sampled_positive_log_relative_mse", "m", m),
    )
    near = np.minimum(V, _FAR)
    top = max(float(near.max(initial=0.0)), 1e-12)
    nodes = top * (1 - np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)) / 2
    coupled, pairs = np.zeros(_NODES), 0.0
    for block in blocks:
        r = block.lengths.shape[1]
        if r > 1:
            share = block.n_blocks * r * (r - 1) / m**2
            pairs += share
            coupled += share * np.array([_excess(block, v, d) for v in nodes])
    # the excess over independent rows starts with the first power, and is divided by it so that small ones keep their digits
    fit = np.polynomial.chebyshev.Chebyshev.fit(nodes, coupled / nodes, _NODES - 1, domain=[0, top])
    rows = np.expm1(V) / m
    with np.errstate(divide="ignore", over="ignore"):
        log_rows = np.where(V > 30, V - np.log(m), np.log(rows))
        total = 1 + near * fit(near) / np.where(rows > 0, rows, 1.0)
        return np.asarray(np.where(V > 0, log_rows + np.log(np.maximum(total, 0)), -np.inf))


def _excess(block: SampledBlocks, V: float, d: int) -> float:
    """Mean over pairs of exp(-V) E exp((w_i + w_j).v) - 1, by the sample with control variates."""
    from scipy.special import hyp0f1

    squares = block.lengths**2
    value = np.exp(-V) * hyp0f1(d / 2, block.sums * V / 4).mean(axis=1) - 1
    controls = np.stack(
        [
            squares.mean(1) - d,
            (squares**2).mean(1) - d * (d + 2),
            hyp0f1(d / 2, squares * V / 4).mean(1) / np.exp(V / 2) - 1,
            hyp0f1(d / 2, squares * V).mean(1) / np.exp(2 * V) - 1,
        ],
        axis=1,
    )
    controls = controls[:, : 4 if V < 4 else 3]  # the last one has no variance to speak of for long vectors
    centred = controls - controls.mean(0)
    slopes = np.linalg.lstsq(centred, value - value.mean(), rcond=1e-10)[0]
    return float(value.mean() - controls.mean(0) @ slopes)
