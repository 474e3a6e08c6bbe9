r"""Variances of sketches of :math:`(x\cdot y)^n`: products of random projections, and TensorSketch.

A product sketch estimates by :math:`\frac1r\sum_i \mathrm{Re}\prod_j P_{ij}` with
:math:`P_{ij} = (w_{ij}\cdot x)\overline{(w_{ij}\cdot y)}` and n independent matrices of rows.  Its variance needs the
moments of two rows of one matrix only, to the power n.  With :math:`t = x\cdot y` and :math:`N = |x|^2|y|^2`,
uniform directions of fixed length :math:`\sqrt d` have :math:`\mathrm{E}P^2 = \frac{d}{d+2}(N + 2t^2)`, Gaussian ones
:math:`N + 2t^2`, and two orthogonal rows :math:`\mathrm{E}P_iP_k = d\,(d\,t^2 - N)/((d-1)(d+2))`.  A complex row
:math:`(a + ib)/\sqrt2` of two independent real ones has :math:`\mathrm{E}|P|^2 = \frac12(M + N)` and
:math:`\mathrm{E}P^2 = \frac12(M - N) + t^2`, M the real moment.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from bochner._validation import check_count, check_flag, check_option

from ._pairs import check_paired_rows


def product_sketch_variance(
    x: Any,
    y: Any,
    degree: int,
    m: int,
    *,
    d: int,
    block: int = 1,
    lengths: Literal["gaussian", "fixed"] = "gaussian",
    complex_rows: bool = False,
) -> np.ndarray:
    r"""Variance of the sketch of :math:`(x\cdot y)^n` by products of n independent random projections.

    Parameters
    ----------
    x, y : array (..., d)
        Points; leading axes broadcast.
    degree : int
        The degree n.
    m : int
        Number of rows of each of the n matrices.
    d : int
        Dimension in which rows are drawn.
    block : int
        Rows of an orthogonal block, of uniform (Haar) directions; 1 for independent rows.
    lengths : {"gaussian", "fixed"}
        Law of the lengths of rows.
    complex_rows : bool
        Whether rows are complex, and features their real and imaginary parts.

    Returns
    -------
    float64 array

    References
    ----------
    wacker2024, hamid2014; the moments of orthogonal rows are ours.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([3.0, 4.0])
    >>> float(product_sketch_variance(x, x, 1, 2, d=2, block=2, lengths="fixed").round(9))       # a rotation
    0.0
    """
    owner = "product_sketch_variance"
    x, y = check_paired_rows(owner, x, y)
    degree = check_count(owner, "degree", degree, 0)  # the constant term of a series has degree zero
    m, d, block = (check_count(owner, name, n) for name, n in (("m", m), ("d", d), ("block", block)))
    check_option(owner, "lengths", lengths, ("gaussian", "fixed"))
    check_flag(owner, "complex_rows", complex_rows)
    t, N = np.vecdot(x, y), np.vecdot(x, x) * np.vecdot(y, y)
    own = N + 2 * t**2
    if lengths == "fixed":
        own = own * d / (d + 2)
    between = d * (d * t**2 - N) / ((d - 1) * (d + 2)) if d > 1 else t**2
    if complex_rows:
        same = ((own + N) / 2) ** degree / 2 + ((own - N) / 2 + t**2) ** degree / 2
        between = (between + t**2) / 2
    else:
        same = own**degree
    whole, rest = divmod(m, block)
    pairs = whole * block * (block - 1) + rest * (rest - 1)
    square = (m * same + pairs * between**degree + (m * (m - 1) - pairs) * t ** (2 * degree)) / m**2
    return np.asarray(np.maximum(square - t ** (2 * degree), 0.0))


def tensor_sketch_variance(x: Any, y: Any, degree: int, width: int) -> np.ndarray:
    r"""Variance of TensorSketch features of :math:`(x\cdot y)^p`.

    Parameters
    ----------
    x, y : array (..., d)
        Points; leading axes broadcast.
    degree : int
        The degree p.
    width : int
        Number D of features.

    Returns
    -------
    float64 array

    Notes
    -----
    In Fourier space the estimate is :math:`\frac1D\sum_k\prod_j P_j(k)`, and for two frequencies
    :math:`\mathrm{E}P_j(k)P_j(l) = t^2 + (N - s)\,1[k + l = 0] + (t^2 - s)\,1[k = l]` modulo D, with
    :math:`t = x\cdot y`, :math:`N = |x|^2|y|^2`, :math:`s = \sum_i x_i^2y_i^2`.  The variance is the mean of its p-th power
    over all pairs of frequencies minus :math:`t^{2p}`: exact, where pham2013 has a bound.

    References
    ----------
    pham2013; the exact form is ours.

    Examples
    --------
    >>> float(tensor_sketch_variance([1.0, 0.0], [2.0, 0.0], 3, 8))       # a single column has no collisions
    0.0
    """
    owner = "tensor_sketch_variance"
    x, y = check_paired_rows(owner, x, y)
    degree, width = check_count(owner, "degree", degree), check_count(owner, "width", width)
    t2, s = np.vecdot(x, y) ** 2, np.vecdot(x**2, y**2)
    crossed, straight = np.vecdot(x, x) * np.vecdot(y, y) - s, t2 - s
    D, both = width, 2 - width % 2  # frequencies that are their own negatives
    if D == 1:
        both = 1
    square = (
        both * (t2 + crossed + straight) ** degree
        + (D - both) * ((t2 + crossed) ** degree + (t2 + straight) ** degree)
        + (D * D - 2 * D + both) * t2**degree
    ) / D**2
    return np.asarray(np.maximum(square - t2**degree, 0.0))
