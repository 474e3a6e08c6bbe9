"""Models with softmax attention turned into models with random features, module by module."""

from .replace import replace_attention

__all__ = ["replace_attention"]
