"""Attention, feature modules and sampled softmax: constructors and forward passes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from hypothesis import strategies as st

from bochner import Approximation, kernels, maps, nn
from fuzz.exploring import explore
from fuzz.targets import Good, Target, constant, target_of
from fuzz.values import HOSTILE, NUMBERS, Value

B, L, E, H, C = 2, 5, 8, 2, 11
"""Batch, length, width, heads, classes."""


def tokens(*shape: int, seed: int = 0, scale: float = 0.5) -> torch.Tensor:
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def embedded() -> torch.Tensor:
    return tokens(B, L, E)


def heads() -> torch.Tensor:
    return tokens(B, H, L, E // H)


def labels() -> torch.Tensor:
    return torch.arange(B * L).remainder(C)


def _spoiled(make: Callable[[], torch.Tensor]) -> list[Value]:
    """A good tensor made wrong in every way."""

    def entry(value: float) -> Callable[[], torch.Tensor]:
        def spoil() -> torch.Tensor:
            x = make().clone()
            x.view(-1)[1] = value
            return x

        return spoil

    return [
        Value("right", make),
        Value("float64", lambda: make().double()),
        Value("bfloat16", lambda: make().bfloat16()),
        Value("float16", lambda: make().half()),
        Value("integers", lambda: make().long()),
        Value("complex", lambda: make().to(torch.complex64)),
        Value("meta", lambda: make().to("meta"), finite=False),
        Value("NumPy array", lambda: make().numpy()),
        Value("nested lists", lambda: make().tolist()),
        Value("sparse", lambda: make().to_sparse()),
        Value("leaf", lambda: make().requires_grad_() if make().is_floating_point() else make()),
        Value("NaN", entry(float("nan")) if make().is_floating_point() else make, finite=False),
        Value("inf", entry(float("inf")) if make().is_floating_point() else make, finite=False),
        Value("1e30", lambda: make() * 1e30 if make().is_floating_point() else make() + 10**9, bounded=False),
        Value("strided", lambda: torch.stack([make(), make()], -1)[..., 0]),
        Value("transposed", lambda: make().transpose(-1, -2).contiguous() if make().ndim > 1 else make()),
        Value("one axis less", lambda: make()[0]),
        Value("one axis more", lambda: make()[None]),
        Value("narrow", lambda: make()[..., :-1]),
        Value("short", lambda: make()[..., :-1, :] if make().ndim > 1 else make()[:-1]),
        Value("no rows", lambda: make()[..., :0, :] if make().ndim > 1 else make()[:0]),
        Value("no batch", lambda: make()[:0]),
        Value("negative", lambda: ~make() if make().dtype == torch.bool else -make() - 1),
        Value("scalar", lambda: make().sum()),
        Value("list of one", lambda: [make()]),
    ]


class TensorTarget(Target):
    """A target whose tensors are spoiled as tensors, most of the time."""

    def _value(self, name: str) -> st.SearchStrategy[Value]:
        good = self.good[name]()
        if isinstance(good, torch.Tensor):
            return st.one_of(*[st.sampled_from(_spoiled(self.good[name]))] * 3, HOSTILE)
        return super()._value(name)


DRAWN = Approximation(kernels.Softmax(), maps.Positive(), n_projections=6).draw(E // H, rng=0)

PLANNED = Approximation(kernels.Softmax(), maps.Positive(), n_projections=6)

GOOD: Good = {
    "heads": lambda: [PLANNED] * H,
    "window": constant(2),
    "anchors": constant(1),
    "q": heads,
    "k": lambda: heads() + 0.1,
    "v": lambda: heads() - 0.1,
    "query": embedded,
    "key": embedded,
    "value": embedded,
    "x": embedded,
    "h": lambda: tokens(B * L, E),
    "input": lambda: tokens(B * L, E),
    "embeddings": lambda: tokens(B * L, E),
    "targets": labels,
    "target": labels,
    "y": embedded,
    "queries": lambda: tokens(B * L, E),
    "classes": lambda: torch.arange(C).expand(B * L, C).contiguous(),
    "indices": lambda: torch.arange(3),
    "labels": labels,
    "features": constant(DRAWN),
    "embed_dim": constant(E),
    "num_heads": constant(H),
    "in_features": constant(E),
    "embedding_dim": constant(E),
    "n_classes": constant(C),
    "n_samples": constant(4),
    "n_projections": constant(6),
    "dropout": constant(0.0),
    "base": constant(10.0),
    "d": constant(E),
    "key_mask": lambda: torch.ones(B, L, dtype=torch.bool),
    "key_padding_mask": lambda: torch.zeros(B, L, dtype=torch.bool),
    "attn_mask": constant(None),
    "scale": constant(0.5),
    "chunk_size": constant(2),
    "prefix_lengths": lambda: torch.tensor([2, 3]),
    "generator": lambda: torch.Generator().manual_seed(0),
    "t": constant(3),
    "offset": constant(0),
    "positions": lambda: torch.arange(L),
}

HANDED_TO_TORCH = ("process_group", "kwargs")


def tensor_target(name: str, call: Any, *, made_from: Any = None, **options: Any) -> TensorTarget:
    known = target_of(name, made_from or call, GOOD)
    good = {key: value for key, value in known.good.items() if key not in HANDED_TO_TORCH}
    return TensorTarget(name, call, good, required=known.required, **options)


MODULES = {
    "RandomFeatureAttention": (
        lambda: nn.RandomFeatureAttention(E, H, batch_first=True),
        (embedded, embedded, embedded),
    ),
    "RandomFeatures": (lambda: nn.RandomFeatures(E), (embedded,)),
    "SampledSoftmax": (lambda: nn.SampledSoftmax(E, C, 4), (lambda: tokens(B * L, E), labels)),
    "Rotary": (lambda: nn.Rotary(E), (embedded, constant(0))),
}


def constructor(name: str, inputs: tuple[Callable[[], Any], ...]) -> TensorTarget:
    def use(**arguments: Any) -> Any:
        torch.manual_seed(0)
        module = getattr(nn, name)(**arguments)
        return module(*(make() for make in inputs))

    return tensor_target(name, use, made_from=getattr(nn, name))


def call_of(module: Any) -> Any:
    return module.forward if isinstance(module, torch.nn.Module) else module.__call__


def forward(name: str, make: Callable[[], Any]) -> TensorTarget:
    torch.manual_seed(0)
    module = make()

    def ask(subject: Any, **arguments: Any) -> Any:
        torch.manual_seed(0)
        return call_of(subject)(**arguments)

    return tensor_target(f"{name}.forward", ask, made_from=call_of(module), subject=lambda: copy.deepcopy(module))


def method(name: str, make: Callable[[], Any], of: str) -> TensorTarget:
    torch.manual_seed(0)
    module = make()

    def ask(subject: Any, **arguments: Any) -> Any:
        torch.manual_seed(0)
        return getattr(subject, of)(**arguments)

    zero = of == "log_proposal"  # the true class has probability zero
    subject, made_from = (lambda: copy.deepcopy(module)), getattr(module, of)
    return tensor_target(f"{name}.{of}", ask, made_from=made_from, subject=subject, infinite=zero)


METHODS = [
    method(name, MODULES[name][0], of)
    for name, methods in {
        "RandomFeatureAttention": ("fit_statistics", "redraw"),
        "RandomFeatures": ("fit_statistics", "redraw", "keys"),
        "SampledSoftmax": ("sample", "log_proposal", "log_prob", "full_loss", "predict", "update", "redraw"),
    }.items()
    for of in methods
]
CONSTRUCTORS = [constructor(name, inputs) for name, (_, inputs) in MODULES.items()]
FORWARDS = [forward(name, make) for name, (make, _) in MODULES.items()]
FUNCTIONS = [
    tensor_target("linear_attention", nn.linear_attention),
    tensor_target("LayerPlan", nn.LayerPlan),
    tensor_target("AttentionFeatures", nn.AttentionFeatures),
    tensor_target("ElementwiseFeatures", nn.ElementwiseFeatures),
]


@pytest.mark.parametrize("target", [*CONSTRUCTORS, *FORWARDS, *METHODS, *FUNCTIONS], ids=str)
@pytest.mark.swept(2)
def test_hostile_arguments(target):
    explore(target.name, target.spoils(), target.check)


@pytest.mark.parametrize("target", [*CONSTRUCTORS, *FORWARDS, *METHODS, *FUNCTIONS], ids=str)
@pytest.mark.swept(2)
def test_good_arguments_are_accepted(target):
    target.ask({})


# Models


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.TransformerEncoderLayer(E, H, 16, batch_first=True).eval()


NOT_MODELS = st.one_of(HOSTILE, NUMBERS, st.sampled_from([Value("Linear", lambda: torch.nn.Linear(2, 2))]))


def spoiled_model(name: str, call: Callable[..., Any], good: Good) -> Target:
    known = target_of(name, call, good)
    kept = {key: value for key, value in known.good.items() if key not in HANDED_TO_TORCH}
    return Target(name, call, kept, required=known.required, changes=("model",))


def converted(
    model: Any,
    spec: Any = "dense",
    n_projections: Any = 256,
    select: Any = None,
    generator: Any = None,
    *,
    per_head: Any = False,
) -> Any:
    """A copy, since a model that is converted in place is changed on purpose."""
    return nn.replace_attention(model, spec, n_projections, select, True, generator, per_head=per_head)


def decoder() -> torch.nn.Module:
    sizes = {"vocab_size": 8, "n_embd": E, "n_layer": 1, "n_head": H, "n_positions": 16}
    return nn.replace_attention(transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)), "favor+", 4)


def to_distill() -> torch.nn.Module:
    return nn.replace_attention(model(), nn.calibrate(model(), [embedded()], 4))


def distilled(model: Any, teacher: Any, batches: Any, *, rate: Any = 0.02, max_queries: Any = 3) -> Any:
    """Two steps, since a large number of them takes long on purpose."""
    return nn.distill(model, teacher, batches, steps=2, rate=rate, max_queries=max_queries, verbose=False)


MODELS = [
    spoiled_model("RedrawSchedule", nn.RedrawSchedule, GOOD | {"model": to_distill, "every": constant(3)}),
    spoiled_model(
        "distill",
        distilled,
        GOOD
        | {"model": to_distill, "teacher": model, "batches": lambda: [embedded()]}
        | {"rate": constant(0.01), "max_queries": constant(3)},
    ),
    spoiled_model("replace_attention", converted, GOOD | {"model": model}),
    spoiled_model(
        "attention_report",
        nn.attention_report,
        GOOD
        | {"model": model, "batches": lambda: [embedded(), embedded() + 0.1], "held_out": constant(None)}
        | {"costs": constant((9,)), "n_draws": constant(1), "mechanisms": constant(None)},
    ),
    spoiled_model("LinearCache", nn.LinearCache, GOOD | {"model": decoder}),
    spoiled_model(
        "calibrate",
        nn.calibrate,
        GOOD | {"model": model, "batches": lambda: [embedded(), embedded() + 0.1], "keep": constant(())},
    ),
]


@pytest.mark.parametrize("target", MODELS, ids=str)
def test_models(target):
    explore(target.name, target.spoils(), target.check)
