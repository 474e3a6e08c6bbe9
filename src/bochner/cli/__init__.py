"""The command line: ``bochner compare``, ``recommend`` and ``info``."""

from .main import main

__all__ = ["main"]
