"""Sequences spread over processes: the result and the gradients of one process."""

from __future__ import annotations

import gc
import multiprocessing
import warnings

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

from bochner import Approximation, kernels, maps
from bochner.nn import RandomFeatureAttention, linear_attention, replace_attention
from support.attention import check_close, fitted, tokens

MAPS = (maps.OptimalPositive(), maps.Positive())


def cases():
    for feature_map in MAPS:
        for causal in (False, True):
            for masked in (False, True):
                yield feature_map, causal, masked


def attention_of(inputs, rows, options, weights):
    """Output on some rows, and gradients of a loss of them."""
    parts = [x[..., rows, :].clone().requires_grad_() for x in inputs]
    out = linear_attention(*parts, **options)
    (out * weights[..., rows, :]).sum().backward()
    return [out.detach(), *(x.grad for x in parts)]


def check_rank(rank, file):
    """In all three processes, and in a group of two of them."""
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=3)
    some = dist.new_group([0, 2])
    check_group(rank, 3, dist.group.WORLD)
    if rank != 1:
        check_group(rank // 2, 2, some)
    dist.destroy_process_group()


def check_group(rank, size, group):
    q, k, v = tokens(2, 2, length=20)
    k[..., 6:9, :] *= 30  # later ranks and earlier ones differ much
    weights = torch.randn(v.shape, generator=torch.Generator().manual_seed(1), dtype=v.dtype)
    mask = torch.ones(2, 1, 20, dtype=torch.bool)
    mask[0, :, :11] = False  # the first ranks hold padding alone
    rows = slice(rank * 20 // size, (rank + 1) * 20 // size)
    for feature_map, causal, masked in cases():
        options = {"features": fitted(feature_map, q, k), "causal": causal}
        whole = attention_of((q, k, v), slice(None), options | {"key_mask": mask if masked else None}, weights)
        own = {"key_mask": mask[..., rows] if masked else None, "process_group": group, "chunk_size": 3}
        for found, expected in zip(attention_of((q, k, v), rows, options | own, weights), whole, strict=True):
            check_close(found, expected[..., rows, :], 1e-10, f"{feature_map} {causal=} {masked=}")


def in_processes(check, folder, count):
    """A check in so many new processes, forked from one that has imported everything: imports take longer than checks."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(["bochner.nn", "support.attention_models"])
    mp.start_processes(check, (folder / "rendezvous",), nprocs=count, start_method="forkserver")


def test_equal_to_one_process(tmp_path):
    in_processes(check_rank, tmp_path, 3)


def test_a_group_of_one_process(tmp_path):
    q, k, v = tokens(2)
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'rendezvous'}", rank=0, world_size=1)
    try:
        phi = fitted(maps.Positive(), q, k)
        for causal in (False, True):
            alone = linear_attention(q, k, v, features=phi, causal=causal)
            spread = linear_attention(q, k, v, features=phi, causal=causal, process_group=dist.group.WORLD)
            check_close(spread, alone, 1e-12)
        with pytest.raises(ValueError, match="prefix_lengths, cu_seqlens and state cannot be combined with it"):
            linear_attention(q, k, v, features=phi, process_group=dist.group.WORLD, cu_seqlens=torch.tensor([0, 23]))
    finally:
        dist.destroy_process_group()


REPLICATED = {
    "matrix": lambda: RandomFeatureAttention(8, 2, batch_first=True, spec="favor++"),
    "arrays": lambda: RandomFeatureAttention(
        8, 2, batch_first=True, spec=Approximation(kernels.Softmax(), maps.ClusterHybrid(2, 2), n_projections=16)
    ),
}


def check_converted(rank):
    """A converted language model: one draw and one choice of constants from the first step on, and equal gradients."""
    from support.attention_models import TOKENS, gpt2  # transformers is slow to import, and other processes need it not

    torch.manual_seed(rank)
    model = DistributedDataParallel(replace_attention(gpt2(), "dense", 8))
    tokens = torch.randint(2, 50, (2, 12), generator=torch.Generator().manual_seed(rank))
    model(tokens, labels=tokens).loss.backward()
    own = [*model.module.buffers(), *(weight.grad for weight in model.parameters()), model(TOKENS[:1]).logits.detach()]
    for tensor in own:
        both = [torch.empty_like(tensor) for _ in range(2)]
        dist.all_gather(both, tensor.contiguous())
        assert torch.equal(*both)
    features = model.module.transformer.h[0].attn.random_features.features
    drawn = features.current.log(torch.ones(4, 1, 8), key=True).log
    maps_of_plans = torch.stack([torch.as_tensor(phi.keys(torch.ones(1, 8).numpy())) for phi in features.drawn()])
    assert torch.allclose(drawn.exp(), maps_of_plans.to(drawn), rtol=1e-4)  # the numbers belong to the plans


def check_modules(rank):
    """Each process has its own seed and its own batches, and rank 1 starts with an empty one."""
    for make in REPLICATED.values():
        torch.manual_seed(rank)
        model = DistributedDataParallel(make())
        with torch.no_grad():
            x = torch.randn(2, 0 if rank else 9, 8)
            model(x, x, x, need_weights=False)
        x = 3 * torch.randn(2, 9, 8)
        model(x, x, x, need_weights=False)[0].square().sum().backward()
        same = torch.linspace(-1, 1, 40).view(1, 5, 8)
        own = [*model.module.buffers(), model(same, same, same, need_weights=False)[0].detach()]
        assert not model.module.features.waits
        for tensor in own:
            both = [torch.empty_like(tensor) for _ in range(2)]
            dist.all_gather(both, tensor)
            assert torch.equal(*both)


def check_replica(rank, file):
    """The models are gone before the group is: a model that held it last would wait in its destructor, with the GIL, for
    a thread of gloo that needs the GIL to drop the tensors of the last all-gather."""
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    for check in (check_modules, check_converted):
        check(rank)
        gc.collect()
    dist.destroy_process_group()


def test_replicas_take_the_constants_of_the_first(tmp_path):
    in_processes(check_replica, tmp_path, 2)
