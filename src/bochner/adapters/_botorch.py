"""Drawn features for the sample paths of BoTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from botorch.sampling.pathwise.features.maps import FeatureMap
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from torch import Tensor

from .._validation import check_instance
from ..approximation import Approximation
from ..kernels import Gaussian, Matern
from ..maps import Map
from ..nn import RandomFeatures
from ..projections import Orthogonal, Projection
from ._gpytorch import FeatureKernel


class _PathFeatures(FeatureMap):
    """Features of a kernel of GPyTorch with its present lengthscale and scale, as BoTorch's paths call them."""

    input_transform = output_transform = None

    def __init__(self, kernel: Kernel, base: Kernel, layer: RandomFeatures) -> None:
        super().__init__()
        self.kernel, self.base, self.layer = kernel, base, layer
        self.num_outputs, self.batch_shape = layer.out_features, torch.Size()

    def forward(self, x: Tensor) -> Tensor:
        for active in (self.kernel.active_dims, self.base.active_dims if self.base is not self.kernel else None):
            x = x if active is None else x.index_select(-1, active)
        scale = self.kernel.outputscale.sqrt() if self.base is not self.kernel else 1.0
        found: Tensor = scale * self.layer(x / self.base.lengthscale)
        return found


def path_features(
    map: Map | None = None, projection: Projection | None = None, generator: torch.Generator | None = None
) -> Callable[..., FeatureMap]:
    """Features for BoTorch's ``draw_kernel_feature_paths`` and ``draw_matheron_paths``, as its ``map_generator``.

    BoTorch draws independent Fourier features of Gaussian and Matern kernels; these have orthogonal directions by default,
    which lowers the error of the prior in moderate dimensions, and any other map or projection on request.

    Parameters
    ----------
    map : Map, optional
        By default cosines and sines.
    projection : Projection, optional
        By default ``projections.Orthogonal()``.
    generator : torch.Generator, optional
        Source of the draws; by default torch's global generator.

    Returns
    -------
    callable
        From ``kernel``, ``num_inputs`` and ``num_outputs`` to features.  The kernel is an ``RBFKernel``, a ``MaternKernel``
        or a `FeatureKernel`, whose own draw is taken, alone or in a ``ScaleKernel``.

    Examples
    --------
    >>> from functools import partial
    >>> import torch
    >>> from botorch.models import SingleTaskGP
    >>> from botorch.sampling.pathwise import draw_kernel_feature_paths, draw_matheron_paths
    >>> from bochner.adapters import path_features
    >>> X = torch.rand(20, 3, dtype=torch.float64)
    >>> model = SingleTaskGP(X, X.sum(dim=-1, keepdim=True))
    >>> prior = partial(draw_kernel_feature_paths, map_generator=path_features())
    >>> paths = draw_matheron_paths(model, torch.Size([16]), prior_sampler=prior)
    >>> paths(torch.rand(5, 3, dtype=torch.float64)).shape
    torch.Size([16, 5])
    """
    if map is not None:
        check_instance("path_features", "map", map, Map, "maps.Trigonometric()")
    if projection is not None:
        check_instance("path_features", "projection", projection, Projection, "projections.Orthogonal()")

    def generate(kernel: Kernel, num_inputs: int, num_outputs: int, **options: Any) -> FeatureMap:
        base = kernel.base_kernel if isinstance(kernel, ScaleKernel) else kernel
        if kernel.batch_shape.numel() > 1:
            raise ValueError(f"path_features: kernels must have no batch, got batch_shape {tuple(kernel.batch_shape)}.")
        if isinstance(base, FeatureKernel):
            return _PathFeatures(kernel, base, base.features)
        if isinstance(base, RBFKernel):
            exact: Any = Gaussian()
        elif isinstance(base, MaternKernel):
            exact = Matern(base.nu)
        else:
            raise TypeError(
                f"path_features: the kernel must be an RBFKernel, a MaternKernel or a FeatureKernel, alone or in a "
                f"ScaleKernel, got {type(base).__name__}."
            )
        directions: Any = Orthogonal() if projection is None else projection
        chosen: Any = map
        spec = Approximation(exact, chosen, directions, n_projections=1)
        d = num_inputs if base.active_dims is None else len(base.active_dims)
        layer = RandomFeatures(d, spec.with_width(num_outputs), generator=generator, dtype=torch.float64)
        return _PathFeatures(kernel, base, layer)

    return generate
