"""How far the law of a rotated vector is from the uniform law on the sphere."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import as_numpy
from .._random import RNG, streams
from .._validation import check_count, check_instance, check_option, check_rows
from ..rotations import Rotation
from ..theory import UniformDiscrepancy, uniform_mmd

_VECTORS = ("e1", "ones", "generic")


def haar_distance(
    rotation: Rotation,
    d: int,
    v: Any = "generic",
    *,
    rate: float = 1.0,
    n: int = 2000,
    confidence: float = 0.95,
    rng: RNG = None,
) -> UniformDiscrepancy:
    r"""Squared maximum mean discrepancy between the law of M v and the uniform law on the sphere.

    A Haar matrix M sends every v to a uniform point.  Fast rotations only approximate that, and some of them only for some
    vectors: this measures how well.

    Parameters
    ----------
    rotation : Rotation
        Law of M.
    d : int
        Dimension; rotations that pad are measured in the padded dimension.
    v : {"e1", "ones", "generic"} or array (d,)
        The vector that is rotated: the first axis, equal coordinates, a fixed random direction, or your own.
    rate : float
        :math:`\lambda` of the kernel :math:`e^{-\lambda\,\mathrm{angle}(x, y)}`.
    n : int
        Independent matrices, at least 4; time and accuracy grow as its square.
    confidence : float
        Coverage of the interval.
    rng : int, numpy.random.Generator or None
        Source of randomness.

    Returns
    -------
    UniformDiscrepancy
        The unbiased estimate with its standard error and confidence interval.  It may be negative.

    See Also
    --------
    bochner.extending.uniform_mmd : the same for any sample of directions.
    bochner.rotations.Rotation.flops : operations of a product, the other axis of OMC Figure 2.

    Notes
    -----
    A value near zero for one v does not prove that rows are uniform: structured Givens products with uniform angles
    cannot be distinguished from Haar at d = 16 with a few thousand matrices, while their kernel estimates along an axis
    are biased by 0.2.

    References
    ----------
    OMC Eq. 9 and Figure 2.

    Examples
    --------
    >>> from bochner.monte_carlo import haar_distance
    >>> from bochner.rotations import Haar, Hadamard
    >>> haar_distance(Hadamard(1), 16, "e1", rng=0).low > 0.25, haar_distance(Haar(), 16, "e1", rng=0).low < 0.01
    (True, True)
    """
    owner = "haar_distance"
    check_instance(owner, "rotation", rotation, Rotation, "rotations.Haar()")
    d, n = check_count(owner, "d", d), check_count(owner, "n", n, 4)
    matrices, generic = streams(rng, "matrices", "generic")
    if isinstance(v, str):
        check_option(owner, "v", v, _VECTORS)
        v = {"e1": np.eye(1, d)[0], "ones": np.ones(d), "generic": generic.standard_normal(d)}[v]
    v = as_numpy(check_rows(owner, v, d))
    if v.ndim != 1:
        raise ValueError(f"{owner}: v must be a vector, an array of shape ({d},), got shape {v.shape}.")
    drawn = rotation.sample(d, n, matrices)
    padded = np.zeros(drawn.dim)
    padded[:d] = v
    rotated = drawn.rows(padded[None], slice(None), back=False)
    return uniform_mmd(rotated, rate, confidence=confidence)
