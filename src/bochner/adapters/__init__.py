"""Random features inside of other packages: GPyTorch, BoTorch and performer-pytorch.

- `FeatureKernel`: a kernel of GPyTorch whose matrix is a product of drawn features;
- `path_features`: features for BoTorch's sample paths;
- `PerformerAttention`: the attention of performer-pytorch with its ``state_dict``, by `bochner.nn.linear_attention`.

Each needs PyTorch, and the first two the package that they serve; it is imported when the name is first used.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._botorch import path_features
    from ._gpytorch import FeatureKernel
    from ._performer import PerformerAttention

__all__ = ["PerformerAttention"]
if _find_spec("gpytorch") is not None:  # otherwise `from bochner.adapters import *` would fail for want of one name
    __all__ += ["FeatureKernel"]
if _find_spec("botorch") is not None:
    __all__ += ["path_features"]

_HOMES = {
    "FeatureKernel": ("_gpytorch", 'gpytorch: pip install "gpytorch>=1.13"'),
    "PerformerAttention": ("_performer", 'PyTorch: pip install "torch>=2.4"'),
    "path_features": ("_botorch", 'botorch: pip install "botorch>=0.13"'),
}


def __getattr__(name: str) -> Any:
    """Import an adapter, and with it the package that it serves."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, needs = _HOMES[name]
    try:
        return getattr(import_module(f"{__name__}.{home}"), name)
    except ImportError:
        raise ImportError(f"bochner.adapters.{name} needs {needs}.") from None


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
