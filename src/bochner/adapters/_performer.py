"""The attention of performer-pytorch, computed by this library from its checkpoints."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .._validation import check_count, check_flag
from ..approximation import Approximation, FeatureMap
from ..kernels import Softmax
from ..maps import Positive
from ..nn import linear_attention
from ..projections import IID, Orthogonal


class PerformerAttention(nn.Module):
    r"""FAVOR+ attention of performer-pytorch: its ``FastAttention``, with the same ``state_dict`` and arguments.

    Use it in place of ``FastAttention`` in a trained model: it needs no compiled extension for causal attention,
    decodes with a state, and adds no constant to the features.

    Parameters
    ----------
    dim_heads : int
        Width d of a head.
    nb_features : int
        Number m of features.
    causal : bool
        Whether a position attends only to itself and earlier positions.

    Notes
    -----
    Features are :math:`e^{Wx' - |x'|^2/2}/\sqrt m` with :math:`x' = d^{-1/4}x` and the rows W of ``projection_matrix``.
    performer-pytorch adds :math:`10^{-4}` to them after a stabilisation, which biases the weights towards equal ones, and
    :math:`10^{-6}` to causal denominators.  Both are left out here, so the outputs of a trained model change: very
    little for queries and keys of small norm, substantially for those of large norm.  Compare the outputs before you
    rely on it, or fine-tune.  Generalised attention and ``no_projection`` are not FAVOR+ and are not supported.

    Examples
    --------
    >>> import torch
    >>> from bochner.adapters import PerformerAttention
    >>> attention = PerformerAttention(dim_heads=16, nb_features=64)
    >>> sorted(attention.state_dict())
    ['projection_matrix']
    >>> q = k = v = 0.5 * torch.randn(1, 4, 10, 16)
    >>> attention(q, k, v).shape
    torch.Size([1, 4, 10, 16])
    """

    projection_matrix: Tensor

    def __init__(self, dim_heads: int, nb_features: int, causal: bool = False) -> None:
        super().__init__()
        d, m = (
            check_count("PerformerAttention", name, value)
            for name, value in (("dim_heads", dim_heads), ("nb_features", nb_features))
        )
        check_flag("PerformerAttention", "causal", causal)
        self.causal = causal
        seed = int(torch.randint(2**62, ()))
        W = Orthogonal().sample(d, m, rng=seed).to_dense()
        self.register_buffer("projection_matrix", torch.as_tensor(W, dtype=torch.float32))
        self._drawn: tuple[Any, FeatureMap] | None = None

    @property
    def features(self) -> FeatureMap:
        """The drawn features, for `linear_attention`; made anew when the matrix has changed."""
        W = self.projection_matrix
        key = W.data_ptr(), W._version
        if self._drawn is None or self._drawn[0] != key:
            rows = W.detach().double().cpu().numpy()
            plan = Approximation(Softmax(), Positive(), IID(), n_projections=len(rows))
            arrays = plan.draw(rows.shape[1], rng=0).to_arrays()
            arrays |= {"base/W": rows, "base/radii": (rows**2).sum(axis=1) ** 0.5}
            self._drawn = key, FeatureMap.from_arrays(plan, rows.shape[1], arrays)
        return self._drawn[1]

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention of heads q, k, v (batch, heads, length, d)."""
        return linear_attention(q, k, v, features=self.features, causal=self.causal)
