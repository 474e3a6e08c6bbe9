"""Features that `linear_attention` takes: drawn to fit its first call, or functions of each coordinate."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._validation import check_count, check_option, shown
from ..approximation import Approximation
from ..approximation.log_features import LogFeatures
from ..catalogue import as_specification
from ..kernels import Softmax
from ._attention_checks import check_generator, root_of_scale
from ._drawn import DrawnFeatures
from ._head_spec import attention_spec
from ._tensor_features import TensorFeatures


class AttentionFeatures:
    r"""Features for `linear_attention` that are fitted and drawn at the first call, and reused in later ones.

    Pass the same object to repeated calls, so that they share their constants and rows.  A module keeps its draw in a
    checkpoint: use `RandomFeatureAttention` in models.

    Parameters
    ----------
    spec : Approximation or str
        What to draw, or the name of a mechanism, for `kernels.Softmax` with scale 1.
    n_projections : int
        Rows of W, if ``spec`` is a name.
    generator : torch.Generator, optional
        Source of the draw; by default torch's global generator.

    Notes
    -----
    Each head, the third axis from the end, has its own constants; the rows of W are shared.  The constants are chosen from
    all queries and keys of the first call that are not masked, so that a causal model should fix them before it is trained.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import AttentionFeatures, linear_attention
    >>> q, k, v = torch.randn(3, 2, 4, 50, 16, generator=torch.Generator().manual_seed(0))
    >>> features = AttentionFeatures("dense", n_projections=128)
    >>> first = linear_attention(q, k, v, features=features)
    >>> torch.equal(first, linear_attention(q, k, v, features=features))
    True
    """

    def __init__(
        self, spec: Approximation | str = "dense", n_projections: int = 256, *, generator: torch.Generator | None = None
    ) -> None:
        owner = "AttentionFeatures"
        check_generator(owner, generator)
        named = as_specification(owner, spec, None, check_count(owner, "n_projections", n_projections))
        self.spec, self.generator = attention_spec(owner, named), generator
        self._drawn: DrawnFeatures | None = None

    @property
    def plans(self) -> list[Approximation]:
        """The plan of each head, once there was a call."""
        return [] if self._drawn is None else self._drawn.plans

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Draw new rows; the constants are kept.

        Parameters
        ----------
        generator : torch.Generator, optional
            Source of the draw; by default torch's global generator.
        """
        check_generator("AttentionFeatures.redraw", generator)
        if self._drawn is not None:
            self._drawn.redraw(generator)

    @torch.no_grad()
    def of(
        self, q: Tensor, k: Tensor, key_bias: Tensor | None, scale: float | Tensor | None, *, alone: bool
    ) -> TensorFeatures:
        """The features for a call of attention with checked arguments; those of the first call are kept.

        ``alone`` says that features estimate all keys, so that their error is that of the attention.
        """
        lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])
        q, k = (x.expand(*lead, *x.shape[-2:]) for x in (q, k))
        heads = lead[-1] if lead else 1
        if self._drawn is None:
            if not k.shape[-2] or not q.shape[-2]:
                raise ValueError(
                    "linear_attention: features must be given where there are no queries and keys to fit them to; pass "
                    "those of the calls that filled the state."
                )
            there = None if key_bias is None else key_bias > -torch.inf
            self._drawn = self._fitted(heads, q, k, there, scale, alone)
        drawn = self._drawn
        if (drawn.d, drawn.heads) != (q.shape[-1], heads):
            raise ValueError(
                f"linear_attention: features were fitted to {drawn.heads} heads of width {drawn.d}, and q has {heads} of "
                f"width {q.shape[-1]}; use another AttentionFeatures."
            )
        return drawn.current

    def _fitted(
        self, heads: int, q: Tensor, k: Tensor, there: Tensor | None, scale: float | Tensor | None, alone: bool
    ) -> DrawnFeatures:
        dtype = torch.float64 if q.dtype == torch.float64 else torch.float32
        drawn: DrawnFeatures = DrawnFeatures(self.spec, q.shape[-1], heads, dtype=dtype, generator=self.generator).to(
            q.device
        )
        root = root_of_scale(q, scale)
        queries, keys = (_by_head(x.to(dtype) * torch.as_tensor(root, dtype=dtype, device=x.device)) for x in (q, k))
        if there is not None:
            rows = _by_head(there.expand(k.shape[:-1])[..., None])[..., 0].any(dim=0)
            queries = queries[:, rows] if queries.shape[1] == keys.shape[1] else queries
            keys = keys[:, rows]
        keys = keys.expand(heads, -1, -1)
        drawn.fit(queries, keys)
        if alone and isinstance(self.spec.kernel, Softmax):
            drawn.warn_of_error("linear_attention", queries, keys)
        return drawn


def _by_head(x: Tensor) -> Tensor:
    """Rows (heads, n, d) of (..., heads, length, d)."""
    return x[None] if x.ndim == 2 else x.movedim(-3, 0).flatten(1, -2)


def grouped(q: Tensor, x: Any, name: str) -> Any:
    """Keys, values or a mask with each head repeated for the query heads of its group, as ``enable_gqa`` of torch does."""
    axis = -2 if name == "key_mask" else -3
    if (
        not isinstance(x, Tensor)
        or not isinstance(q, Tensor)
        or x.ndim < -axis
        or (name == "key_mask" and x.shape[axis] == 1)
    ):
        return x
    heads, of = q.shape[-3] if q.ndim > 2 else 1, x.shape[axis]
    if of == 0 or heads % of:
        raise ValueError(
            f"linear_attention: with enable_gqa the {heads} heads of q must be a multiple of those of {name}, got {of}; "
            f"shapes {shown(q)} and {shown(x)}."
        )
    return x.repeat_interleave(heads // of, dim=axis)


class SharedKeys(NamedTuple):
    """Query heads that share a key and its features: they become further queries of the head of the key."""

    group: int  # query heads of each key head
    causal: bool  # whether queries of one position must lie side by side; otherwise those of one head do

    @classmethod
    def of(cls, q: Any, k: Any, v: Any, causal: bool) -> SharedKeys:
        """What tensors of fitting shapes share; a group of one for others."""
        shapes = [x.shape[-3] if isinstance(x, Tensor) and x.ndim > 2 else 1 for x in (q, k, v)]
        fits = shapes[1] == shapes[2] > 0 and not shapes[0] % shapes[1]
        return cls(shapes[0] // shapes[1] if fits else 1, causal)

    def joined(self, q: Tensor) -> Tensor:
        """Queries (..., heads, n, d) as those of the key heads, (..., key heads, group * n, d)."""
        q = q.unflatten(-3, (-1, self.group))
        return (q.transpose(-3, -2) if self.causal else q).flatten(-3, -2)

    def divided(self, out: Tensor) -> Tensor:
        """The output for each query head."""
        parts: Tensor = out.unflatten(-2, (-1, self.group) if self.causal else (self.group, -1))
        return (parts.transpose(-3, -2) if self.causal else parts).flatten(-4, -3)


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
