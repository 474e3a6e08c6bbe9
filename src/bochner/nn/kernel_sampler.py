"""Classes drawn in proportion to estimates of the softmax kernel."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .class_samplers import ClassSampler, Sample, UniformSampler
from .feature_tree import FeatureTree
from .features import TensorFeatures

_CHUNK_NUMBERS = 1 << 23
_HIGHEST_LOGARITHM = 20.0
"""Stabilised logarithms of key features start at zero; past this the stabiliser is chosen anew."""


class KernelSampler(ClassSampler):
    r"""A drawn feature map with the tree of the features of all classes, mixed with the uniform law.

    Notes
    -----
    Key features are :math:`e^{l_{ij} - c_j}` and query features :math:`e^{l_j + c_j - \max}`, with :math:`c_j` the largest
    logarithm of feature j over all classes when the tree was built.  What is taken from one side is given to the
    other, and a constant of a query changes no probability: the law of the samples is that of the plain features, and
    norms for which those overflow are safe.  When classes have grown so much since that a logarithm passes 20, the
    tree is built anew with other :math:`c_j`.

    Parameters
    ----------
    features : TensorFeatures
        Drawn features of the softmax kernel at unit scale.
    n_classes : int
    class_rows : callable
        Vectors (k, d) and biases (k,) or None of the classes with given indices (k,), as they are now.
    uniform_share : float
        Weight of the uniform law in the mixture.
    """

    def __init__(
        self,
        features: TensorFeatures,
        n_classes: int,
        class_rows: Callable[[Tensor], tuple[Tensor, Tensor | None]],
        uniform_share: float,
    ) -> None:
        self.features, self.n_classes, self.class_rows = features, n_classes, class_rows
        self.uniform, self.uniform_share = UniformSampler(n_classes), uniform_share
        self.build()

    def build(self) -> None:
        """Features of all classes and all sums, in O(n D)."""
        step = max(1, _CHUNK_NUMBERS // self.features.width)
        parts = [self._keys(torch.arange(self.n_classes)[i : i + step]) for i in range(0, self.n_classes, step)]
        mantissas, logarithms = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
        largest = logarithms.amax(0)
        self.shift = torch.where(largest.isfinite(), largest, torch.zeros_like(largest))
        self.tree = FeatureTree(mantissas * torch.exp(logarithms - self.shift))

    def refresh(self, indices: Tensor) -> None:
        """Features of these classes (distinct) and the sums above them, in O(k D log n)."""
        mantissas, logarithms = self._keys(indices)
        logarithms = logarithms - self.shift
        if bool((logarithms > _HIGHEST_LOGARITHM).any()):
            self.build()
        else:
            self.tree.refresh(indices, mantissas * torch.exp(logarithms))

    def sample(self, X: Tensor, n_samples: int, left_out: Tensor | None, generator: torch.Generator | None) -> Sample:
        """Ways down the tree, some of them to leaves drawn uniformly."""
        goals = self.uniform.sample(X, n_samples, left_out, generator).classes
        chosen = torch.rand(goals.shape, device=X.device, generator=generator) < self.uniform_share
        classes, log_prob = self.tree.descend(self._queries(X), goals.where(chosen, -1), left_out, generator)
        return Sample(classes, self._mixed(X, classes, log_prob, left_out))

    def log_prob(self, X: Tensor, classes: Tensor, left_out: Tensor | None) -> Tensor:
        """Probabilities of the ways down, mixed with the uniform law."""
        log_prob = self.tree.descend(self._queries(X), classes, left_out).log_prob
        return self._mixed(X, classes, log_prob, left_out)

    def _mixed(self, X: Tensor, classes: Tensor, log_prob: Tensor, left_out: Tensor | None) -> Tensor:
        if not self.uniform_share:
            return log_prob
        uniform = self.uniform.log_prob(X, classes, left_out).to(log_prob.dtype) + math.log(self.uniform_share)
        if self.uniform_share == 1:
            return uniform
        return torch.logaddexp(log_prob + math.log1p(-self.uniform_share), uniform)

    def _queries(self, X: Tensor) -> Tensor:
        """Stabilised features of queries (batch, d)."""
        mantissas, logarithms = self._parts(X, key=False)
        logarithms = logarithms + self.shift
        return mantissas * torch.exp(logarithms - logarithms.amax(-1, keepdim=True))

    def _keys(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Mantissas and logarithms of the features of classes, at least in float32."""
        classes, bias = self.class_rows(indices)
        mantissa, logarithm = self._parts(classes, key=True)
        return mantissa, logarithm if bias is None else logarithm + bias[:, None].to(logarithm.dtype)

    def _parts(self, X: Tensor, *, key: bool) -> tuple[Tensor, Tensor]:
        mantissa, logarithm = self.features.parts(X[None], key=key)  # features have an axis of heads
        mantissa = torch.ones_like(logarithm) if mantissa is None else mantissa.expand_as(logarithm)
        return mantissa[0], logarithm[0]
