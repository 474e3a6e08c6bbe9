"""The command line: ``bochner compare``, ``recommend``, ``reproduce``, ``bench`` and ``info``."""

from .main import main

__all__ = ["main"]
