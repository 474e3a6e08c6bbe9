"""How far each head of a model is from exact attention with random features: predicted and measured."""

from .report import AttentionReport, attention_report
from .rows import HeadRow, MechanismRow

__all__ = ["AttentionReport", "HeadRow", "MechanismRow", "attention_report"]
