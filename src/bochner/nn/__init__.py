"""Random features in PyTorch."""

from .sampled_softmax import SampledSoftmax

__all__ = ["SampledSoftmax"]
