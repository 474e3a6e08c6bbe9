"""Rotary position embedding of queries and keys."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .._validation import check_count, check_positive
from ._attention_checks import check_floating


class Rotary(nn.Module):
    r"""Rotary position embedding of queries and keys, for `RandomFeatureAttention` or standalone use.

    Parameters
    ----------
    d : int
        Width of a head, an even number.
    base : float
        Base b of the angles.

    Notes
    -----
    At position t the pair of coordinates i and i + d/2 is rotated by the angle :math:`t\,b^{-2i/d}`, so that dot
    products depend on differences of positions.  Random features of the softmax kernel apply to the rotated vectors,
    which have the same lengths: they estimate :math:`e^{s\,R_tq\cdot R_uk}` without bias.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import Rotary
    >>> x = torch.randn(2, 5, 8)
    >>> y = Rotary(8)(x)
    >>> torch.allclose(y.norm(dim=-1), x.norm(dim=-1), atol=1e-5)
    True
    >>> torch.allclose(Rotary(8)(x[:, 3:], start=3), y[:, 3:])
    True
    """

    frequencies: Tensor

    def __init__(self, d: int, base: float = 10000.0) -> None:
        super().__init__()
        if check_count("Rotary", "d", d) % 2:
            raise ValueError(f"Rotary: d must be even, since coordinates turn in pairs, got {d}.")
        check_positive("Rotary", "base", base)
        frequencies = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
        self.register_buffer("frequencies", frequencies.float(), persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Rotate x (..., length, d), whose first position is ``start``; angles are computed in at least float32."""
        check_floating("Rotary", "x", x)
        if x.ndim < 2 or x.shape[-1] != 2 * len(self.frequencies):
            raise ValueError(
                f"Rotary: x must have shape (..., length, {2 * len(self.frequencies)}), got {tuple(x.shape)}."
            )
        check_count("Rotary", "start", start, 0)
        positions = torch.arange(start, start + x.shape[-2], device=x.device)
        angles = positions[:, None] * self.frequencies.to(torch.promote_types(x.dtype, torch.float32))
        a, b = x.chunk(2, dim=-1)
        cosine, sine = angles.cos(), angles.sin()
        return torch.cat([a * cosine - b * sine, b * cosine + a * sine], dim=-1).to(x.dtype)
