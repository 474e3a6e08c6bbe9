"""The command line: ``bochner compare``, ``recommend``, ``bench`` and ``info``."""

from .main import main

__all__ = ["main"]
