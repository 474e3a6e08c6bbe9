r"""Features as a function of the lengthscale, with the random rows held: stretched maps, and gradients through them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...approximation import FeatureMap
from ...kernels import Kernel, Softmax
from ...maps import Trigonometric

_STEP = 1e-5
"""Of central differences in the logarithm: the cube root of the rounding error of float64."""


def lengthscales(kernel: Any) -> np.ndarray:
    """Bandwidths, (1,) or (d,)."""
    return np.atleast_1d(np.asarray(kernel.bandwidth, dtype=np.float64))


def with_lengthscales(kernel: Any, values: np.ndarray) -> Any:
    """The kernel with other bandwidths, (1,) or (d,)."""
    return kernel.with_bandwidth(float(values[0]) if len(values) == 1 else tuple(values.tolist()))


def check_ard(owner: str, kernel: Kernel | None) -> None:
    """Refuse lengthscales of their own for columns of a kernel that has one number."""
    if isinstance(kernel, Softmax):
        raise ValueError(f"{owner}: ard=True needs a kernel with a lengthscale for each column, and {kernel!r} has one "
                         f"scale; pass ard=False, or a kernel such as kernels.Gaussian().")  # fmt: skip


def stretched(phi: FeatureMap, values: np.ndarray) -> FeatureMap:
    r"""The same draw with other lengthscales: :math:`\phi(x/\ell)` with W and all constants of the map held.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels
    >>> phi = Approximation(kernels.Gaussian(), n_projections=4).draw(2, rng=0)
    >>> x = np.ones((1, 2))
    >>> bool(np.allclose(stretched(phi, np.array([2.0])).queries(2 * x), phi.queries(x)))
    True
    """
    spec = replace(phi.spec, kernel=with_lengthscales(phi.spec.kernel, values))
    return phi.with_kernel(spec.kernel)  # type: ignore[arg-type]


def pull_back(phi: FeatureMap, X: np.ndarray, Phi: np.ndarray, G: np.ndarray, n_scales: int) -> np.ndarray:
    r"""Gradient in the logarithms of the lengthscales, from the gradient G (n, D) in the features Phi (n, D) of X.

    Notes
    -----
    For trigonometric features of :math:`u = W x/\ell`, :math:`\partial u_i/\partial\log\ell_j = -w_{ij}x_j/\ell_j`, so

    .. math:: \frac{\partial}{\partial\log\ell_j} = -\sum_n \tilde x_{nj} (H W)_{nj}, \qquad
              H = G_{\sin}\circ\Phi_{\cos} - G_{\cos}\circ\Phi_{\sin}, \quad \tilde x = x/\ell,

    one product with the adjoint of W, which is never formed where the rotation is fast.  Other maps have central
    differences of their features, two evaluations for each lengthscale.
    """
    spec = phi.spec
    if not n_scales:
        return np.empty(0)
    if isinstance(spec.map, Trigonometric) and spec.kernel is not None and spec.kernel.shift_invariant:
        each = _through_cosines(phi, X, Phi, G)
        return each if n_scales > 1 else each.sum(keepdims=True)
    return _by_differences(phi, X, G, n_scales)


def _through_cosines(phi: FeatureMap, X: np.ndarray, Phi: np.ndarray, G: np.ndarray) -> np.ndarray:
    nodes: Any = phi.features.nodes  # type: ignore[attr-defined]
    m, sines = (
        nodes.operator.shape[0],
        len(nodes),
    )  # a node at zero adds a cosine that does not move, after the m others
    H = G[:, sines : sines + m] * Phi[:, :m] - G[:, :m] * Phi[:, sines : sines + m]
    gradient: np.ndarray = -np.einsum("nd,nd->d", phi.spec.at_unit_scale(X), nodes.operator.adjoint(H))
    return gradient


def _by_differences(phi: FeatureMap, X: np.ndarray, G: np.ndarray, n_scales: int) -> np.ndarray:
    start = np.broadcast_to(lengthscales(phi.spec.kernel), (n_scales,))
    gradient = np.empty(n_scales)
    for j in range(n_scales):
        step = np.zeros(n_scales)
        step[j] = _STEP
        up, down = (stretched(phi, start * np.exp(sign * step)).queries(X) for sign in (1, -1))
        gradient[j] = np.vdot(G, up - down) / (2 * _STEP)
    return gradient
