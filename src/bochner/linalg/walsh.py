r"""The Walsh-Hadamard transform, readable: for any array library, and as the oracle of the compiled one."""

from __future__ import annotations

from typing import Any

from .._arrays import array_namespace


def walsh_levels(x: Any, low: int, high: int) -> Any:
    r"""Unnormalised Walsh-Hadamard transform of the last axis over index bits ``low`` to ``high - 1``.

    Level j replaces each pair of entries whose indices differ in bit j alone by their sum and difference,
    :math:`\sqrt2\,\tilde F^{j+1}` of OMC Eq. 2; over all bits that is the Hadamard matrix (OMC Eq. 3).
    """
    xp = array_namespace(x)
    lead, d = tuple(x.shape[:-1]), x.shape[-1]
    for level in range(low, high):
        half = 2**level
        pairs = xp.reshape(x, (*lead, d // (2 * half), 2, half))
        a, b = pairs[..., 0, :], pairs[..., 1, :]
        x = xp.reshape(xp.stack([a + b, a - b], axis=-2), (*lead, d))
    return x


def fwht_reference(x: Any) -> Any:
    """Unnormalised Walsh-Hadamard transform of the last axis, whose length is a power of two."""
    return walsh_levels(x, 0, int(x.shape[-1]).bit_length() - 1)
