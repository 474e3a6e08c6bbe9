"""PyTorch: attention in linear time with random features, as a function and as modules."""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise ImportError('bochner.nn needs PyTorch: pip install "bochner[torch]".') from None

from .conversion import replace_attention
from .denominators import DenominatorWarning
from .layer import RandomFeatures
from .linear import linear_attention
from .module import RandomFeatureAttention
from .reporting import AttentionReport, attention_report
from .rotary import Rotary
from .sampled_softmax import SampledSoftmax
from .state import AttentionState

__all__ = [
    "AttentionReport",
    "AttentionState",
    "DenominatorWarning",
    "RandomFeatureAttention",
    "RandomFeatures",
    "Rotary",
    "SampledSoftmax",
    "attention_report",
    "linear_attention",
    "replace_attention",
]
