"""Rotary positions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .._validation import check_count, check_positive


class Rotary(nn.Module):
    r"""Rotary position embedding of queries and keys, for `RandomFeatureAttention` and by itself.

    Notes
    -----
    At position t the pair of coordinates i and i + d/2 turns by the angle :math:`t\,b^{-2i/d}`, b the base, so that dot
    products depend on differences of positions.  Lengths do not change, so random features of the softmax kernel serve
    turned vectors as well as others: they estimate :math:`e^{s\,R_tq\cdot R_uk}` without bias.

    Parameters
    ----------
    d : int
        Width of a head; even.
    base : float

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
        """Turn x (..., length, d), whose first position is ``start``; angles in float32 at least."""
        positions = torch.arange(start, start + x.shape[-2], device=x.device)
        angles = positions[:, None] * self.frequencies.to(torch.promote_types(x.dtype, torch.float32))
        a, b = x.chunk(2, dim=-1)
        cosine, sine = angles.cos(), angles.sin()
        return torch.cat([a * cosine - b * sine, b * cosine + a * sine], dim=-1).to(x.dtype)
