"""Which rows are coupled: blocks of d rows, the last one cut."""

from __future__ import annotations

from bochner._validation import check_count, check_option

COUPLINGS = ("iid", "orthogonal", "simplex")


def block_sizes(m: int, d: int) -> tuple[int, ...]:
    """Sizes of the independent blocks that m rows in d dimensions are drawn in.

    Examples
    --------
    >>> from bochner.theory import block_sizes
    >>> block_sizes(10, 4)
    (4, 4, 2)
    """
    m, d = check_count("block_sizes", "m", m), check_count("block_sizes", "d", d)
    return (d,) * (m // d) + ((m % d,) if m % d else ())


def pair_fraction(m: int, d: int) -> float:
    r"""Fraction of ordered pairs of rows within one block, :math:`\varphi(m, d) = \sum_b n_b(n_b - 1)/m^2`.

    It is (m - 1)/m for m <= d, and (d - 1)/m where d divides m.
    """
    return sum(n * (n - 1) for n in block_sizes(m, d)) / m**2


def coupled_pairs(m: int, d: int, coupling: str) -> tuple[tuple[float, float], ...]:
    """Fractions of ordered pairs of rows that are coupled, each with the cosine of such a pair.

    A whole simplex block has the cosine -1/(d - 1); a last block cut to r rows is a true r-simplex, with the cosine
    -1/(r - 1) of its own.  Orthogonal pairs have the cosine 0, independent rows no coupled pairs.

    Examples
    --------
    >>> from bochner.theory import coupled_pairs
    >>> coupled_pairs(10, 4, "simplex")
    ((0.24, -0.3333333333333333), (0.02, -1.0))
    """
    check_option("coupled_pairs", "coupling", coupling, COUPLINGS)
    sizes = block_sizes(m, d)
    if coupling == "iid":
        return ()
    if coupling == "orthogonal":
        return ((pair_fraction(m, d), 0.0),) if pair_fraction(m, d) else ()
    counts = {n: sizes.count(n) for n in sizes if n > 1}
    return tuple((count * n * (n - 1) / m**2, -1 / (n - 1)) for n, count in counts.items())
