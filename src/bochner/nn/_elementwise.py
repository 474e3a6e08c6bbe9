"""Features of attention that are functions of single coordinates, without random rows."""

from __future__ import annotations

import torch
from torch import Tensor

from .._validation import check_count, check_option, shown
from ..approximation.log_features import LogFeatures
from ._tensor_features import TensorFeatures

FUNCTIONS = ("elu", "relu")


class ElementwiseFeatures(TensorFeatures):
    r"""Features of linear attention that apply a function to each coordinate: the baselines of the literature.

    They estimate no kernel, and in particular not softmax: use them in models that are trained with them.  The width is
    that of a head.  `linear_attention` takes them as ``features``.

    Parameters
    ----------
    d : int
        Width of a head.
    function : {"elu", "relu"}
        :math:`\mathrm{elu}(x) + 1`, which is positive, or :math:`\max(0, x) + \epsilon`.
    epsilon : float
        Added to the features of "relu"; with zero, queries and keys that share no positive coordinate have no weight.

    Notes
    -----
    Inputs are multiplied by the root of the scale first, as for all features of `linear_attention`.  Positive parts of
    random projections are the features of another kernel: ``Approximation(kernels.ArcCosine(1))``.

    References
    ----------
    katharopoulos2020 ("elu"); choromanski2021 ("relu"); crt (Table 2) compares both.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import ElementwiseFeatures, linear_attention
    >>> q, k, v = torch.randn(3, 2, 4, 50, 16, generator=torch.Generator().manual_seed(0))
    >>> out = linear_attention(q, k, v, features=ElementwiseFeatures(16, "elu"), scale=1.0)
    >>> weights = (torch.nn.functional.elu(q) + 1) @ (torch.nn.functional.elu(k) + 1).mT
    >>> torch.allclose(out, weights @ v / weights.sum(-1, keepdim=True), atol=1e-5)
    True
    """

    traceable = True

    def __init__(self, d: int, function: str = "elu", epsilon: float = 1e-3) -> None:
        owner = "ElementwiseFeatures"
        self.d = self.width = check_count(owner, "d", d)
        check_option(owner, "function", function, FUNCTIONS)
        self.function = function
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 <= epsilon < float("inf"):
            raise ValueError(f"{owner}: epsilon must be a number that is not negative, got {shown(epsilon)}.")
        self.epsilon = float(epsilon)
        self.positive = function == "elu" or epsilon > 0

    def log(self, X: Tensor, *, key: bool) -> LogFeatures:
        """Logarithms of the features; those of "relu" without epsilon are in the mantissa, where zero has a gradient."""
        if self.function == "elu":
            return LogFeatures(None, torch.where(X > 0, X.clamp(min=0).log1p(), X))
        part = X.clamp(min=0)
        if self.epsilon:
            return LogFeatures(None, (part + self.epsilon).log())
        return LogFeatures(part, torch.where(part > 0, 0.0, -torch.inf).to(X.dtype))

    def __repr__(self) -> str:
        return f"ElementwiseFeatures({self.d}, {self.function!r}, {self.epsilon!r})"
