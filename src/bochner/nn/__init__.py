"""PyTorch: attention in linear time with random features, as a function and as modules."""

from __future__ import annotations

from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING, Any

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise ImportError('bochner.nn needs PyTorch: pip install "torch>=2.4".') from None

from ._attention import linear_attention
from ._attention_features import AttentionFeatures, ElementwiseFeatures
from ._attention_parts import DenominatorWarning
from ._attention_state import AttentionState
from ._bounded_module import BoundedHead, BoundedPlan
from ._calibration import calibrate
from ._coded_attention import coded_attention
from ._coded_plan import CodedHead, CodedPlan
from ._conversion import replace_attention
from ._distillation import distill
from ._graph_attention import graph_attention
from ._head_spec import LayerPlan
from ._hugging_face import register_with_transformers as _register_with_transformers
from ._key_codes import KeyCodes
from ._multihead import RandomFeatureAttention
from ._random_feature_layer import RandomFeatures
from ._redraw_schedule import RedrawSchedule
from ._report import AttentionReport, attention_report
from ._rotary import Rotary
from ._sampled_softmax import SampledSoftmax
from ._uptraining import uptrain

if TYPE_CHECKING:
    from ._coded_cache import CodedCache
    from ._linear_cache import LinearCache

__all__ = [
    "AttentionFeatures",
    "AttentionReport",
    "AttentionState",
    "BoundedHead",
    "BoundedPlan",
    "CodedHead",
    "CodedPlan",
    "DenominatorWarning",
    "ElementwiseFeatures",
    "KeyCodes",
    "LayerPlan",
    "RandomFeatureAttention",
    "RandomFeatures",
    "RedrawSchedule",
    "Rotary",
    "SampledSoftmax",
    "attention_report",
    "calibrate",
    "coded_attention",
    "distill",
    "graph_attention",
    "linear_attention",
    "replace_attention",
    "uptrain",
]
if _find_spec("transformers") is not None:  # otherwise `from bochner.nn import *` would fail for want of one name
    __all__ += ["CodedCache", "LinearCache"]


def __getattr__(name: str) -> Any:
    """Import what needs ``transformers`` on first access."""
    if name not in ("CodedCache", "LinearCache"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from ._coded_cache import CodedCache
        from ._linear_cache import LinearCache
    except ImportError:
        raise ImportError(f'bochner.nn.{name} needs transformers: pip install "transformers>=5".') from None
    return CodedCache if name == "CodedCache" else LinearCache


def __dir__() -> list[str]:
    return sorted([*globals(), "CodedCache", "LinearCache"])


_register_with_transformers()
