"""Logits of classes: their vectors and biases, and the exact loss."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._arrays import in_working_precision
from .._validation import check_count, check_flag, check_option, check_positive, shown
from ._attention_checks import check_floating, check_place

REDUCTIONS = ("mean", "sum", "none")


class ClassLogits(nn.Module):
    r"""Vectors and biases of n classes with logits :math:`o_i = \tau\,h\cdot c_i + b_i`, and the exact cross-entropy.

    Parameters
    ----------
    embedding_dim, n_classes : int
        Width of queries and classes, number of classes.
    normalize : bool
        Whether both are normalised to unit length first.
    scale : float
        The factor :math:`\tau`.
    bias, sparse : bool
        Whether there are biases, and whether gradients are sparse tensors.
    reduction : {"mean", "sum", "none"}
    ignore_index : int
        Target of rows that have no loss.
    """

    def __init__(
        self,
        embedding_dim: int,
        n_classes: int,
        *,
        normalize: bool,
        scale: float,
        bias: bool,
        sparse: bool,
        reduction: str,
        ignore_index: int,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        self.owner = type(self).__name__
        self.embedding_dim = check_count(self.owner, "embedding_dim", embedding_dim)
        self.n_classes = check_count(self.owner, "n_classes", n_classes, 2)
        for name, flag in (("normalize", normalize), ("bias", bias), ("sparse", sparse)):
            check_flag(self.owner, name, flag)
        check_option(self.owner, "reduction", reduction, REDUCTIONS)
        if isinstance(ignore_index, bool) or not isinstance(ignore_index, int):
            raise TypeError(f"{self.owner}: ignore_index must be an integer, got {shown(ignore_index)}.")
        check_place(self.owner, device, dtype)
        self.normalize, self.scale = normalize, check_positive(self.owner, "scale", scale)
        self.sparse, self.reduction, self.ignore_index = sparse, reduction, ignore_index
        self.weight = nn.Parameter(torch.empty(n_classes, embedding_dim, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(n_classes, device=device, dtype=dtype)) if bias else None

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Class vectors of length about one, biases of zero."""
        nn.init.normal_(self.weight, std=1 / math.sqrt(self.embedding_dim), generator=generator)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def full_loss(self, h: Tensor, targets: Tensor) -> Tensor:
        """The cross-entropy over all classes, in O(n d) per row: for evaluation."""
        rows, targets, kept = self.enter(h, targets)
        return self.reduced(F.cross_entropy(self.logits(rows), targets, reduction="none"), kept)

    def logits(self, h: Tensor) -> Tensor:
        """Logits of all classes, (..., n)."""
        h, weight = (h, self.weight) if not self.normalize else (unit(h), unit(self.weight))
        return F.linear(self.scale * h, weight, self.bias)

    def working_logits(self, h: Tensor) -> Tensor:
        """Logits of all classes in at least float32, for parameters of any precision."""
        logits: Tensor = in_working_precision(self.logits(h.to(self.weight.dtype)))
        return logits

    def log_prob(self, h: Tensor, classes: Tensor | None = None) -> Tensor:
        """Logarithms of the model's probabilities of all classes (..., n), or of ``classes`` (..., k)."""
        log_prob = self.logits(self.checked_queries("log_prob", h)).log_softmax(-1)
        if classes is not None:
            self.check_classes("log_prob", "classes", classes, (*h.shape[:-1], None))
        return log_prob if classes is None else log_prob.gather(-1, classes)

    def predict(self, h: Tensor) -> Tensor:
        """The most probable class of each row."""
        return self.logits(self.checked_queries("predict", h)).argmax(-1)

    def logits_of(self, rows: Tensor, classes: Tensor) -> Tensor:
        """Logits of some classes (batch, k) for each row (batch, d)."""
        vectors = F.embedding(classes, self.weight, sparse=self.sparse)
        if self.normalize:
            rows, vectors = unit(rows), unit(vectors)
        logits = self.scale * torch.einsum("bd,bkd->bk", rows, vectors)
        if self.bias is None:
            return logits
        bias = torch.gather(self.bias, 0, classes.flatten(), sparse_grad=self.sparse)
        return logits + bias.view_as(logits)

    def enter(self, h: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rows and targets that have a loss, flattened, and which those are."""
        self.checked_queries("forward", h)
        self._check_shape(self.owner, "targets", targets, tuple(h.shape[:-1]), ", one for each query")
        kept = targets != self.ignore_index
        chosen = targets[kept]
        self._check_range(self.owner, "targets", chosen, f" (or be {self.ignore_index}, which is ignored)")
        return h[kept], chosen, kept

    def checked_queries(self, method: str, h: Tensor, *, matrix: bool = False) -> Tensor:
        """H, refused where its type, width or numbers cannot be used."""
        owner = f"{self.owner}.{method}"
        check_floating(owner, "h", h)
        if h.shape[-1:] != (self.embedding_dim,) or (matrix and h.ndim != 2):
            shape = f"shape (batch, {self.embedding_dim})" if matrix else f"last axis {self.embedding_dim}"
            raise ValueError(f"{owner}: expected queries with {shape}, got shape {tuple(h.shape)}.")
        own = self.weight.dtype
        if h.device != self.weight.device:
            raise ValueError(
                f"{owner}: h must be on the device of the class vectors, {self.weight.device}, got {h.device}."
            )
        if h.dtype != own and not torch.is_autocast_enabled(h.device.type):
            raise TypeError(f"{owner}: h must have the type of the class vectors, {own}, got {h.dtype}.")
        if h.device.type == "cpu" and not bool(h.isfinite().all()):  # elsewhere a look at the numbers would be slow
            raise ValueError(f"{owner}: h holds numbers that are not finite.")
        return h

    def check_classes(self, method: str, name: str, classes: Tensor, shape: tuple[int | None, ...]) -> None:
        """Refuse anything but classes of that shape, in which None stands for any number."""
        self._check_shape(f"{self.owner}.{method}", name, classes, shape)
        self._check_range(f"{self.owner}.{method}", name, classes)

    def _check_shape(
        self, owner: str, name: str, classes: Tensor, shape: tuple[int | None, ...], reason: str = ""
    ) -> None:
        if not isinstance(classes, Tensor) or classes.layout != torch.strided:
            raise TypeError(f"{owner}: {name} must be a dense tensor of int64, got {shown(classes)}.")
        if classes.device != self.weight.device:
            raise ValueError(f"{owner}: {name} must be on {self.weight.device}, got {classes.device}.")
        fits = classes.ndim == len(shape) and all(b in (None, a) for a, b in zip(classes.shape, shape, strict=True))
        if not fits or classes.dtype != torch.int64:
            raise ValueError(
                f"{owner}: {name} must be int64 of shape {str(shape).replace('None', 'any')}{reason}, got "
                f"{classes.dtype} of shape {tuple(classes.shape)}."
            )

    def _check_range(self, owner: str, name: str, classes: Tensor, otherwise: str = "") -> None:
        if classes.device.type != "cpu" or not classes.numel():
            return
        low, high = int(classes.min()), int(classes.max())
        if not 0 <= low <= high < self.n_classes:
            raise ValueError(
                f"{owner}: {name} must lie between 0 and {self.n_classes - 1}{otherwise}, got values from {low} to {high}."
            )

    def reduced(self, losses: Tensor, kept: Tensor) -> Tensor:
        """Losses of rows put together, zero for those that were not kept."""
        if self.reduction == "none":
            return losses.new_zeros(kept.shape).masked_scatter(kept, losses)
        return losses.sum() if self.reduction == "sum" else losses.mean()


def unit(rows: Tensor) -> Tensor:
    """Rows brought to unit length; zero stays zero."""
    return F.normalize(rows, dim=-1)
