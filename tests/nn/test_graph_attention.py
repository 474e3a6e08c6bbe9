"""Attention with a graph kernel as its mask: the quadratic form of the same features, its gradient, and its mean."""

from __future__ import annotations

import types

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch")

from bochner import Approximation, kernels, maps  # noqa: E402
from bochner.graphs import Diffusion, RegularizedLaplacian, Walks  # noqa: E402
from bochner.nn import graph_attention  # noqa: E402

N, D = 24, 6
RING = sparse.diags_array([np.ones(N - 1), np.ones(N - 1), [1.0], [1.0]], offsets=[1, -1, N - 1, 1 - N]).tocsr()


def heads(dtype=torch.float64, lead=(2, 3)):
    generator = torch.Generator().manual_seed(0)
    return [0.7 * torch.randn(*lead, N, D, generator=generator, dtype=dtype) for _ in range(3)]


def quadratic(q, k, v, phi, nodes):
    weights = (phi.queries(q * D**-0.25) @ phi.keys(k * D**-0.25).mT) * torch.as_tensor(
        (nodes.queries @ nodes.keys.T).toarray()
    )
    return weights @ v / weights.sum(dim=-1, keepdim=True)


@pytest.mark.parametrize("fmap", [maps.Positive(), maps.OptimalPositive(A=-0.1), maps.Trigonometric()], ids=repr)
@pytest.mark.parametrize("chunk_size", [None, 3])
def test_it_is_the_quadratic_form_of_the_same_features(fmap, chunk_size):
    q, k, v = heads()
    phi = Approximation(kernels.Softmax(), fmap, n_projections=20).draw(D, rng=0)
    nodes = Walks(Diffusion(2.0), n_walks=8).draw(RING, rng=1)
    found = graph_attention(q, k, v, nodes, features=phi, chunk_size=chunk_size)
    torch.testing.assert_close(found, quadratic(q, k, v, phi, nodes), rtol=1e-8, atol=1e-8)


def test_gradients_are_those_of_the_quadratic_form():
    phi = Approximation(kernels.Softmax(), maps.Positive(), n_projections=10).draw(D, rng=0)
    nodes = Walks(Diffusion(2.0), n_walks=8).draw(RING, rng=1)
    grads = []
    for work in (lambda *x: graph_attention(*x, nodes, features=phi), lambda *x: quadratic(*x, phi, nodes)):
        inputs = [x.requires_grad_() for x in heads(lead=())]
        work(*inputs).square().sum().backward()
        grads.append([x.grad for x in inputs])
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9)


def test_unnormalised_weights_are_unbiased():
    """Means of 300 draws of numerators, with independent walks, against the exact mask: |z| < 5 in 1,728 entries."""
    q, k, _ = heads(lead=())
    eye = torch.eye(N, dtype=torch.float64)
    kernel = Diffusion(1.5)
    exact = np.exp((q @ k.T).numpy() * D**-0.5) * kernel.matrix(RING)
    draws = []
    for i in range(300):
        phi = Approximation(kernels.Softmax(), maps.Positive(), n_projections=8).draw(D, rng=i)
        nodes = Walks(kernel, n_walks=4).draw(RING, rng=1000 + i)
        share = graph_attention(q, k, eye, nodes, features=phi)  # rows of weights over their sums, which follow
        ones = (phi.queries(q * D**-0.25) @ phi.keys(k * D**-0.25).T) * torch.as_tensor(nodes.gram(np.arange(N)))
        draws.append((share * ones.sum(dim=-1, keepdim=True)).numpy())
    draws = np.array(draws)
    seen = np.linalg.matrix_power((RING + sparse.eye_array(N)).toarray(), 3) > 0  # farther nodes are met too rarely
    z = (draws.mean(axis=0) - exact) / (draws.std(axis=0, ddof=1) / np.sqrt(len(draws)))
    assert np.abs(z[seen]).max() < 5


def test_precisions_specifications_and_networkx():
    q, k, v = heads(torch.float32, lead=(2,))
    networkx = pytest.importorskip("networkx")
    nodes = Walks(RegularizedLaplacian(1.0), n_walks=8).draw(networkx.cycle_graph(N), rng=0, symmetric=True)
    one, other = (graph_attention(q, k, v, nodes, spec="favor+", n_projections=64) for _ in range(2))
    assert one.dtype == torch.float32 and torch.equal(one, other)
    half = graph_attention(*(x.bfloat16() for x in (q, k, v)), nodes, spec="favor+", n_projections=64)
    assert half.dtype == torch.bfloat16 and (half.float() - one).abs().max() < 0.1


def test_refusals():
    q, k, v = heads(lead=())
    nodes = Walks(Diffusion()).draw(RING, rng=0)
    with pytest.raises(
        TypeError, match=r"^graph_attention: mask must be drawn features of nodes such as graphs\.Walks"
    ):
        graph_attention(q, k, v, RING)
    with pytest.raises(ValueError, match=r"^graph_attention: mask has 24 nodes, and q has 23 rows"):
        graph_attention(q[1:], k[1:], v[1:], nodes)
    with pytest.raises(ValueError, match=r"^graph_attention: q and k must have a row for each node, got 24 and 20"):
        graph_attention(q, k[4:], v[4:], nodes)
    with pytest.raises(ValueError, match=r"^graph_attention: chunk_size must be"):
        graph_attention(q, k, v, types.SimpleNamespace(queries=nodes.queries, keys=nodes.keys), chunk_size=0)
