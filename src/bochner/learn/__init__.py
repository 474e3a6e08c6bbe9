"""Kernel machines as scikit-learn estimators."""

__all__: list[str] = []
