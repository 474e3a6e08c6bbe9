"""TensorSketch: polynomial features by hashing columns and convolving their sketches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import theory
from .._arrays import array_namespace, is_sparse, like
from ..kernels import Kernel, Polynomial
from ..projections import Projection
from ._drawing import Draws
from ._error import ErrorCase
from ._features import Features, Scaled
from ._map import Coupling, Layout, Map


@dataclass(frozen=True)
class TensorSketch(Map):
    r"""Polynomial features by hashing: columns are added to random buckets, and p such sketches are convolved by FFT.

    Use it for sparse rows of many columns: the cost is :math:`O(p\,(\mathrm{nnz} + m\log m))` per row for m features, and
    nothing of the size of the columns is multiplied.  `Maclaurin` is more accurate on dense rows of few columns.

    See Also
    --------
    Maclaurin : Exact monomials, and products of projections.

    Notes
    -----
    For :math:`k(x, y) = (x\cdot y + c)^p`, with :math:`\sqrt c` as one more column: p independent count sketches with
    hashes h and signs s, :math:`C_j(x)_b = \sum_{i: h_j(i) = b} s_j(i)\,x_i`, and
    :math:`\phi(x) = \mathrm{FFT}^{-1}(\prod_j \mathrm{FFT}\,C_j(x))`.  It is unbiased; its variance is
    `theory.tensor_sketch_variance`, which is exact.

    References
    ----------
    pham2013.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> X = np.random.default_rng(0).standard_normal((5, 100)) / 10
    >>> spec = Approximation(kernels.Polynomial(2), maps.TensorSketch(), n_projections=4096)
    >>> bool(np.abs(spec.draw(100, rng=0).gram(X) - spec.kernel(X)).max() < 0.3)
    True
    """

    name: ClassVar[str] = "tensor-sketch"
    family: ClassVar[str] = "polynomials"
    requirement: ClassVar[str] = "a polynomial kernel"
    formula: ClassVar[str] = r"\mathrm{FFT}^{-1}\prod_j\mathrm{FFT}\,C_jx"
    cost: ClassVar[str] = r"O(p\,\mathrm{nnz}/m + p\log m)"
    references: ClassVar[tuple[str, ...]] = ("pham2013",)
    uses_rows: ClassVar[bool] = False

    def serves(self, kernel: Kernel | None) -> bool:
        return isinstance(kernel, Polynomial)

    @property
    def coupling(self) -> Coupling:
        """Independent: there are no rows to couple."""
        return "independent"

    def unbiased(self, projection: Projection) -> bool:
        return True

    def worth_trying(self, projection: Projection) -> bool:
        return projection.coupling == "iid"

    def layout(self, projection: Projection) -> Layout:
        return Layout(per_row=1, extra=0, symmetric=True, positive=False)

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        assert isinstance(kernel, Polynomial)
        shape = (kernel.degree, draws.d + 1)
        buckets = draws.table("buckets", shape, lambda rng: rng.integers(draws.m, size=shape).astype(np.float64))
        signs = draws.table("signs", shape, lambda rng: rng.choice([-1.0, 1.0], shape))
        return TensorSketchFeatures(buckets.astype(np.int64), signs, math.sqrt(kernel.offset), draws.m)

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error of any width."""
        constant = math.sqrt(case.kernel.offset)
        x, y = (np.pad(Z, ((0, 0), (0, 1)), constant_values=constant) for Z in (case.X, case.Y))
        return theory.tensor_sketch_variance(x[:, None], y[None], case.kernel.degree, case.m)


class TensorSketchFeatures(Features):
    """Drawn hashes and signs; the last of each belongs to the constant column."""

    symmetric, positive, sparse_rows = True, False, True

    def __init__(self, buckets: np.ndarray, signs: np.ndarray, constant: float, width: int) -> None:
        from scipy import sparse

        d = buckets.shape[1] - 1
        rows, self.width = np.arange(d), width
        self.sketches = [
            sparse.csr_array((s[:-1], (rows, h[:-1])), shape=(d, width)) for h, s in zip(buckets, signs, strict=True)
        ]
        self.constants = np.zeros((len(buckets), width))
        self.constants[np.arange(len(buckets)), buckets[:, -1]] = constant * signs[:, -1]

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        if is_sparse(X) or isinstance(X, np.ndarray):
            return self._in_numpy(X), None
        xp, product = array_namespace(X), None
        for sketch, constant in zip(self.sketches, self.constants, strict=True):
            wave = xp.fft.rfft(X @ like(sketch.toarray(), X) + like(constant, X), axis=-1)
            product = wave if product is None else product * wave
        return xp.fft.irfft(product, n=self.width, axis=-1), None

    def _in_numpy(self, X: Any) -> np.ndarray:
        from scipy.fft import irfft, rfft

        rows = X if is_sparse(X) else X.reshape(-1, X.shape[-1])
        product: Any = None
        for sketch, constant in zip(self.sketches, self.constants, strict=True):
            matrix = sketch.astype(X.dtype)
            values = (rows @ matrix).toarray() if is_sparse(X) else (matrix.T @ rows.T).T
            wave = rfft(values + constant.astype(X.dtype), axis=-1)
            product = wave if product is None else np.multiply(product, wave, out=product)
        return np.asarray(irfft(product, n=self.width, axis=-1)).reshape(*X.shape[:-1], self.width)
