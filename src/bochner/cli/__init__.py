"""The command line: ``bochner bench`` and ``bochner info``."""

from .main import main

__all__ = ["main"]
