"""Which hyperparameters an estimator may optimise, and which it was asked to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...approximation import Approximation
from .lengthscale import check_ard


def free_names(owner: str, optimize: Any, known: Sequence[str]) -> frozenset[str]:
    """The names in ``optimize``: True for all, False for none, a name, or several.

    Examples
    --------
    >>> sorted(free_names("example", True, ("lengthscale", "noise")))
    ['lengthscale', 'noise']
    >>> free_names("example", "noise", ("lengthscale", "noise"))
    frozenset({'noise'})
    """
    if isinstance(optimize, bool):
        return frozenset(known if optimize else ())
    chosen = (optimize,) if isinstance(optimize, str) else optimize
    if not isinstance(chosen, tuple | list | set | frozenset) or not set(chosen) <= set(known):
        listed = ", ".join(repr(name) for name in known)
        raise ValueError(f"{owner}: optimize must be True, False, or some of {listed}, got {optimize!r}.")
    return frozenset(chosen)


def n_free_scales(owner: str, spec: Approximation, optimize: Any, ard: bool, d: int) -> int:
    """How many lengthscales move: none, one, or one for each of d columns.

    ``optimize=True`` means what the kernel has; a lengthscale asked for by name must be there.
    """
    if spec.kernel is None or not spec.kernel.has_bandwidth:
        kernel = "a map without a kernel" if spec.kernel is None else repr(spec.kernel)
        if ard:
            raise ValueError(f"{owner}: ard=True needs a kernel with a lengthscale for each column, and {kernel} has none; "
                             f"pass ard=False, or a kernel such as kernels.Gaussian().")  # fmt: skip
        if optimize is True:
            return 0
        raise ValueError(f"{owner}: optimize={optimize!r} asks for a lengthscale, and {kernel} has none; leave it out, or "
                         f"use a kernel with one, such as kernels.Gaussian().")  # fmt: skip
    if ard or isinstance(getattr(spec.kernel, "lengthscale", 1.0), tuple):
        check_ard(owner, spec.kernel)
        return d
    return 1
