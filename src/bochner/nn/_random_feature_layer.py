"""Random features as a layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .._validation import check_count, check_flag
from ..approximation import Approximation
from ..kernels import Gaussian
from ._attention_checks import check_floating, check_generator, check_place
from ._checkpoint import LoadsWhole
from ._drawn import DrawnFeatures
from ._head_spec import as_spec

_OWNER = "RandomFeatures"


class RandomFeatures(LoadsWhole):
    r"""Random features :math:`\phi(x)` of a kernel as a layer: (..., in_features) to (..., out_features).

    Followed by a linear layer it is a kernel machine that is trained with the rest of the model.

    Parameters
    ----------
    in_features : int
        Width of the inputs.
    spec : Approximation or str, optional
        What to draw, or the name of a mechanism such as "rff"; by default 256 rows of trigonometric features of the
        Gaussian kernel.
    learned_scale : bool
        Whether to learn a factor of the inputs, the inverse of a lengthscale, starting from 1.
    generator : torch.Generator, optional
        Source of the draw; by default torch's global generator.
    device, dtype
        Device and type of the learned factor and the buffers.

    Notes
    -----
    The draw is stored in buffers, and therefore in checkpoints; only `redraw` changes it.  For maps that treat queries
    and keys differently, the layer returns the features of queries, and `keys` those of keys.  Half precisions are
    computed in float32.

    Examples
    --------
    >>> import torch
    >>> from bochner import Approximation, kernels
    >>> from bochner.nn import RandomFeatures
    >>> layer = RandomFeatures(3, Approximation(kernels.Gaussian(2.0), n_projections=64))
    >>> layer(torch.randn(5, 3)).shape, layer.out_features
    (torch.Size([5, 128]), 128)
    """

    def __init__(
        self,
        in_features: int,
        spec: Approximation | str | None = None,
        *,
        learned_scale: bool = False,
        generator: torch.Generator | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = check_count(_OWNER, "in_features", in_features)
        check_flag(_OWNER, "learned_scale", learned_scale)
        check_generator(_OWNER, generator)
        check_place(_OWNER, device, dtype)
        kept = torch.float64 if dtype == torch.float64 else torch.float32
        drawn = DrawnFeatures(as_spec(_OWNER, spec, Gaussian()), in_features, dtype=kept, generator=generator)
        self.features = drawn.to(device)
        self.log_scale = nn.Parameter(torch.zeros((), device=device, dtype=dtype)) if learned_scale else None

    @property
    def out_features(self) -> int:
        """Width of the features."""
        return int(self.features.current.width)

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Draw new rows into the buffers; constants chosen from data stay."""
        check_generator(f"{_OWNER}.redraw", generator)
        self.features.redraw(generator)

    @torch.no_grad()
    def fit_statistics(self, x: Tensor, y: Tensor | None = None) -> None:
        """Choose the map's constants from queries x (..., in_features), and keys y, by default the same."""
        for name, z in (("x", x), ("y", x if y is None else y)):
            self._check(name, z)
        q, k = (self._scaled(z).flatten(0, -2)[None] for z in (x, x if y is None else y))
        self.features.fit(q, k)

    def forward(self, x: Tensor) -> Tensor:
        """Features of queries, (..., out_features)."""
        return self._of(x, key=False)

    def keys(self, y: Tensor) -> Tensor:
        """Features of keys, (..., out_features)."""
        return self._of(y, key=True)

    def _scaled(self, x: Tensor) -> Tensor:
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        return x if self.log_scale is None else x * self.log_scale.exp()

    def _check(self, name: str, x: Tensor) -> None:
        check_floating(_OWNER, name, x)
        if x.shape[-1:] != (self.in_features,):
            raise ValueError(
                f"{_OWNER}: expected inputs with last axis {self.in_features}, got shape {tuple(x.shape)}."
            )

    def _of(self, x: Tensor, *, key: bool) -> Tensor:
        self._check("x", x)
        if self.features.waits:
            self.fit_statistics(x)
        with torch.autocast(x.device.type, enabled=False):
            values: Tensor = self.features.current.log(self._scaled(x), key=key).values()
        return values.to(x.dtype)
