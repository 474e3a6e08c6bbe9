"""Drawn features as a kernel of GPyTorch."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.models.exact_prediction_strategies import LinearPredictionStrategy
from linear_operator.operators import LowRankRootLinearOperator, MatmulLinearOperator, RootLinearOperator
from torch import Tensor

from .._validation import check_instance
from ..approximation import Approximation
from ..nn import RandomFeatures


class FeatureKernel(Kernel):
    r"""A GPyTorch kernel :math:`k(x, y) = \phi(x/\ell)\cdot\phi(y/\ell)` of drawn features, with a learned lengthscale.

    Use it in place of ``gpytorch.kernels.RFFKernel``: for orthogonal or simplex directions, for Matern and other
    kernels, and for landmarks.  Training and prediction take time linear in the number of rows.

    Parameters
    ----------
    num_dims : int
        Number of columns of the data.
    spec : Approximation, optional
        What to draw, of a kernel with lengthscale one; by default 256 pairs of cosines and sines of the Gaussian kernel.
    generator : torch.Generator, optional
        Source of the draw; by default torch's global generator.
    **kwargs
        Options of ``gpytorch.kernels.Kernel``, such as ``ard_num_dims``, ``lengthscale_prior`` or ``active_dims``.

    Notes
    -----
    The draw is part of the ``state_dict``.  Put it into ``ScaleKernel`` for a learned amplitude.

    Examples
    --------
    >>> import torch
    >>> from gpytorch.kernels import RBFKernel, ScaleKernel
    >>> from bochner import Approximation, kernels
    >>> from bochner.adapters import FeatureKernel
    >>> kernel = ScaleKernel(FeatureKernel(3, Approximation(kernels.Matern(2.5), n_projections=512)))
    >>> kernel(torch.randn(10, 3)).to_dense().shape
    torch.Size([10, 10])
    """

    has_lengthscale = True

    def __init__(
        self,
        num_dims: int,
        spec: Approximation | None = None,
        *,
        generator: torch.Generator | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.features = RandomFeatures(num_dims, spec, generator=generator, dtype=torch.float64)
        drawn = self.features.features.spec
        if not isinstance(drawn, Approximation) or not drawn.plan(torch.zeros(2, num_dims).numpy()).symmetric:
            raise ValueError(
                f"FeatureKernel: spec must have the same features for queries and keys, got {drawn!r}; use another map, or "
                f"a projection without signed weights."
            )

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Any:
        """Products of features, as a linear operator of their width."""
        for name, x in (("x1", x1), ("x2", x2)):
            check_instance("FeatureKernel", name, x, Tensor, f"torch.as_tensor({name})")
            if x.device != self.lengthscale.device:
                here = self.lengthscale.device
                raise ValueError(
                    f"FeatureKernel: {name} must be on {here}, as the kernel is, got {x.device}; move one."
                )
        z1 = self.features(x1 / self.lengthscale)
        same = x1.shape == x2.shape and x1.dtype == x2.dtype and torch.equal(x1, x2)
        z2 = z1 if same else self.features(x2 / self.lengthscale)
        if z1.dtype != z2.dtype:
            z1, z2 = (z.to(torch.promote_types(z1.dtype, z2.dtype)) for z in (z1, z2))
        if diag:
            return (z1 * z2).sum(-1)
        if z1 is not z2:
            return MatmulLinearOperator(z1, z2.mT)
        return (LowRankRootLinearOperator if z1.shape[-1] < z1.shape[-2] else RootLinearOperator)(z1)

    def prediction_strategy(self, *arguments: Any) -> Any:
        """Predictions by a linear model of the features, rather than by a matrix of the rows."""
        return LinearPredictionStrategy(*arguments)
