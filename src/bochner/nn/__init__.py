"""PyTorch: attention in linear time with random features, as a function and as modules."""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise ImportError('bochner.nn needs PyTorch: pip install "bochner[torch]".') from None

from .denominators import DenominatorWarning
from .layer import RandomFeatures
from .linear import linear_attention
from .module import RandomFeatureAttention
from .rotary import Rotary
from .state import AttentionState

__all__ = [
    "AttentionState",
    "DenominatorWarning",
    "RandomFeatureAttention",
    "RandomFeatures",
    "Rotary",
    "linear_attention",
]
