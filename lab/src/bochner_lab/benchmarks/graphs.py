"""Benchmarks of graph random features: a million nodes, unbiasedness on two thousand, and the gain of each coupling."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from bochner.graphs import Diffusion, NodeRegression, Walks
from bochner.reporting import seconds

from ._bench import Result, at_most, measured, peak_memory

_SIDE, _KNOWN, _NOISE = 1000, 0.2, 0.1
_COUPLINGS = (
    ("independent", "independent"),
    ("antithetic", "independent"),
    ("stratified", "independent"),
    ("independent", "repelling"),
    ("antithetic", "repelling"),
    ("stratified", "repelling"),
)


def run() -> Iterator[Result]:
    """All cases, in order."""
    yield from couplings()
    yield unbiased()
    yield walks(_SIDE)
    yield from process(_SIDE)


def grid(side: int) -> Any:
    """The grid of side x side nodes."""
    line = sparse.diags_array([np.ones(side - 1), np.ones(side - 1)], offsets=[1, -1])
    return sparse.csr_array(sparse.kron(line, sparse.eye_array(side)) + sparse.kron(sparse.eye_array(side), line))


def random_graph(n: int, degree: float, seed: int = 0) -> Any:
    """Edges between random pairs of nodes, of random weights."""
    rng = np.random.default_rng(seed)
    upper = sparse.random_array(
        (n, n), density=degree / n, rng=rng, data_sampler=lambda size: rng.uniform(0.5, 2, size)
    )
    W = sparse.triu(upper, 1)
    return sparse.csr_array(W + W.T)


def couplings(n: int = 60, draws: int = 400) -> Iterator[Result]:
    """Mean squared errors of the kernel of all pairs, relative to independent walks."""
    W, kernel = random_graph(n, 8.0), Diffusion(2.0)
    exact, errors = kernel.matrix(W), {}
    for lengths, directions in _COUPLINGS:
        law = Walks(kernel, 4, 0.3, lengths, directions)
        grams = (law.draw(W, rng=i).gram(np.arange(n)) for i in range(draws))
        errors[lengths, directions] = np.array([((found - exact) ** 2).mean() for found in grams])
    base = errors["independent", "independent"]
    for (lengths, directions), found in list(errors.items())[1:]:
        ratio = float(found.mean() / base.mean())
        error = ratio * float(np.sqrt(found.var() / found.mean() ** 2 + base.var() / base.mean() ** 2) / draws**0.5)
        row = at_most(
            f"squared error of {lengths} lengths, {directions} directions / independent walks, and two standard errors",
            ratio + 2 * error,
            1,
            "x",
            f"{ratio:.3f} ± {error:.3f}; {n} nodes, 4 walks, {draws} draws",
        )
        yield row.with_numbers(lengths=lengths, directions=directions, ratio=ratio, error=error)


def unbiased(n: int = 2000, draws: int = 300, probes: int = 40) -> Result:
    """Sums of the estimated kernel with random signs on both sides, against the exponential of the matrix."""
    W, kernel = random_graph(n, 6.0), Diffusion(2.0)
    rng = np.random.default_rng(1)
    u, v = rng.choice([-1.0, 1.0], (2, n, probes))
    exact = (u * (kernel.matrix(W) @ v)).sum(axis=0)
    law, sums = Walks(kernel), []
    for i in range(draws):
        phi = law.draw(W, rng=i)
        sums.append(((phi.queries.T @ u) * (phi.keys.T @ v)).sum(axis=0))
    found = np.array(sums)
    z = (found.mean(axis=0) - exact) / (found.std(axis=0, ddof=1) / np.sqrt(draws))
    case = f"largest |z| of {probes} sums of the kernel of {n} nodes against expm, {draws} draws"
    return at_most(case, float(np.abs(z).max()), 5, "", f"root mean square {np.sqrt((z**2).mean()):.2f}")


def walks(side: int) -> Result:
    """Features of all nodes of a grid, for queries and keys."""
    W, law = grid(side), Walks(Diffusion(2.0), 16)
    start, cpu = time.perf_counter(), time.process_time()
    phi = law.draw(W, rng=0, symmetric=True)
    took, used = time.perf_counter() - start, time.process_time() - cpu
    details = f"{seconds(used)} of CPU, {phi.queries.nnz / 1e6:.1f} million entries, peak {peak_memory() / 1e9:.2f} GB"
    return at_most(f"Walks.draw, {side * side} nodes, 16 walks each", took, 60, "s", details)


def process(side: int) -> Iterator[Result]:
    """Gaussian process from noisy values at a fifth of the nodes of a grid, judged at all of them.

    The rules are not tuned on this function: a walk is as long as the diffusion (halting 1/t), and the noise is its variance
    over that of the values.
    """
    rng, W = np.random.default_rng(0), grid(side)
    x, y = np.divmod(np.arange(side * side), side)
    truth = np.sin(x / 20) * np.cos(y / 30) + 0.3 * np.sin((x + y) / 9)
    known = rng.choice(len(truth), int(_KNOWN * len(truth)), replace=False)
    values = truth[known] + _NOISE * rng.standard_normal(len(known))
    laws = {
        "t = 20, halting 1/t": (Walks(Diffusion(20.0), 16, 0.05), _NOISE**2 / float(values.var())),
        "defaults": (Walks(Diffusion()), 0.1),
    }
    for name, (law, noise) in laws.items():
        start, cpu = time.perf_counter(), time.process_time()
        model = NodeRegression(law, noise=noise, tolerance=1e-4, rng=0).fit(W, known, values)
        found = model.predict(np.arange(len(truth)))
        took, used = time.perf_counter() - start, time.process_time() - cpu
        error = float(np.sqrt(((found - truth) ** 2).mean()))
        details = (
            f"error {error:.3f}, values vary by {truth.std():.2f}; {model.n_iterations_} iterations, {seconds(used)} of "
            f"CPU, peak {peak_memory() / 1e9:.2f} GB"
        )
        case = f"NodeRegression, {side * side} nodes, values at {len(known)}, {name}"
        yield measured(case, took, "s", details).with_numbers(error=error, spread=float(truth.std()))
        if name == "defaults":
            return
        start = time.perf_counter()
        drawn = model.sample(np.arange(len(truth)), 1, rng=1)[:, 0]
        took, spread = time.perf_counter() - start, float(np.sqrt(((drawn - found) ** 2).mean()))
        details = f"its distance from the mean {spread:.3f}, where the mean has an error of {error:.3f}"
        yield measured(f"NodeRegression.sample, one function at {side * side} nodes", took, "s", details)
