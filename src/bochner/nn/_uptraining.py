"""Training of a converted model towards its teacher: adapters of low rank, hidden states and logits."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrize

from .._progress import note, progress
from .._validation import check_count, check_flag, check_positive, shown
from ._attention_checks import check_generator
from ._conversion import attention_modules, check_model
from ._hugging_face import ATTRIBUTE
from ._multihead import RandomFeatureAttention
from ._recording import exact_copy, first_tensor, run

_OWNER = "uptrain"
_HELD = 32  # batches whose teacher's states are held: the teacher runs once for each, and not in each step

_EMBEDDING = 5.0
"""Weight of the change of embeddings, which is about as large as that of hidden states then.

MiniLM, 128 rows, from one distilled state (60 validation passages): cosine .964, the same nearest neighbour .75.  With the
divergence of similarities to 200 other passages added, .953 and .73; with twice this weight, mostly on the last state, .963
and .75.  A linear map of embeddings, fitted to 120 passages, raises the cosine before training from .924 to .940, and not
the neighbours.  They need more than another loss: if these errors are shrunk, .95 have the same neighbour from a cosine of
.998 on."""


def uptrain(
    model: nn.Module,
    teacher: nn.Module,
    batches: Iterable[Any],
    *,
    lora: int | None = 16,
    steps: int = 100,
    rate: float | None = None,
    generator: torch.Generator | None = None,
    verbose: bool = True,
) -> nn.Module:
    r"""Train a converted model to match the hidden states and logits of the original model.

    Use it where a conversion loses too much accuracy: after `calibrate`, `replace_attention` and optionally `distill`.
    No labels are needed.  Only changes of low rank are trained in the linear layers of blocks with converted attention,
    and added to their weights at the end, so that the model has the same modules and parameters as before.

    Parameters
    ----------
    model : torch.nn.Module
        A converted model, which is changed in place.
    teacher : torch.nn.Module
        The model with exact attention, before or after its conversion; it is not changed.
    batches : iterable
        Typical data, each batch as in `calibrate`; repeated from the start if there are fewer than ``steps``.
    lora : int or None
        Rank of the changes of the weights; None trains the weights themselves.
    steps : int
        Number of steps, with one batch each.
    rate : float, optional
        Largest learning rate of Adam; by default 2e-3, or 2e-4 for the weights themselves.
    generator : torch.Generator, optional
        Source of the initial adapters; by default torch's global generator.
    verbose : bool
        Whether to show a progress bar, if it takes more than a few seconds.

    Returns
    -------
    torch.nn.Module
        ``model``.

    See Also
    --------
    distill : Trains features only, layer by layer; faster.

    Notes
    -----
    With the outputs :math:`h_l` of the blocks that hold converted attention and those of the teacher, :math:`t_l`, a step
    reduces

    .. math:: \frac1n\sum_l \frac{|h_l - t_l|^2}{|t_l - \bar t_l|^2} + \mathrm{KL}(p_t \,\|\, p),

    where the second term, per token, is used for models with logits.  For others it is :math:`5(1 - \cos)` of the means
    of the last states over tokens, which are the embeddings of sentence encoders.  A change of rank r of a weight is
    :math:`W + BA`, where B starts at zero; A and B are trained, and gradients do not reach the features.

    In a ``with torch.autocast(...)`` block the forward passes are in half precision, which is faster on
    processors with such products.

    An interruption leaves the model as it was before the call.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import calibrate, replace_attention, uptrain
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2).eval()
    >>> batches = [torch.randn(4, 12, 16) for _ in range(4)]
    >>> converted = replace_attention(model, calibrate(model, batches, n_projections=8), copy=True)
    >>> x = torch.randn(8, 12, 16)
    >>> def error():
    ...     with torch.no_grad():
    ...         return float((converted(x) - model(x)).square().mean())
    >>> before = error()
    >>> uptrain(converted, model, batches, steps=30, lora=4) is converted, error() < before
    (True, True)
    """
    check_model(_OWNER, model)
    check_model(f"{_OWNER}: teacher", teacher)
    if lora is not None:
        check_count(_OWNER, "lora", lora)
    check_count(_OWNER, "steps", steps)
    rate = check_positive(_OWNER, "rate", (2e-4 if lora is None else 2e-3) if rate is None else rate)
    check_generator(_OWNER, generator)
    check_flag(_OWNER, "verbose", verbose)
    if isinstance(batches, Tensor | Mapping | str) or not isinstance(batches, Iterable):
        raise TypeError(
            f"{_OWNER}: batches must be a list or an iterator of batches, such as [batch], got {shown(batches)}."
        )
    blocks = _blocks(model)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    twin = exact_copy(teacher)
    twin = copy.deepcopy(twin) if lora is None else twin  # its weights may be those that are trained
    training = model.training
    try:
        with _adapted(model.eval(), blocks, lora, generator) as trained:
            _train(model, twin, batches, blocks, trained, steps, rate, verbose)
    except BaseException:
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.copy_(before[name])
        raise
    finally:
        model.train(training)
    return model


def _train(
    model: nn.Module,
    teacher: nn.Module,
    batches: Iterable[Any],
    blocks: list[str],
    trained: list[nn.Parameter],
    steps: int,
    rate: float,
    verbose: bool,
) -> None:
    optimizer = torch.optim.Adam(trained, rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=max(steps, 2), pct_start=0.1)
    data, known = itertools.cycle(batches), dict[int, Any]()
    bar = progress(range(steps), label="uptrain", shown=verbose)
    for _ in bar:
        batch = next(data, None)
        if batch is None:
            raise ValueError(f"{_OWNER}: batches must hold at least one batch, got none.")
        held = known.get(id(batch))
        if held is None or held[0] is not batch:
            with torch.no_grad():
                held = batch, _states(teacher, batch, blocks)
            if len(known) < _HELD:
                known[id(batch)] = held
        with torch.enable_grad():
            optimizer.zero_grad()
            loss = _distance(_states(model, batch, blocks), held[1])
            with torch.autocast(loss.device.type, enabled=False):  # the forward pass may be in half precision
                loss.backward()
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            torch.clear_autocast_cache()  # else all steps see the weights of the first one
            schedule.step()
        note(bar, f"loss {float(loss.detach()):.3g}")


def _blocks(model: nn.Module) -> list[str]:
    """Names of the modules of lists that hold converted attention: the blocks whose outputs are hidden states."""
    found = []
    for name, module in attention_modules(model).items():
        if not (hasattr(module, ATTRIBUTE) or isinstance(module, RandomFeatureAttention)):
            continue
        path = name.split(".")
        places = [k for k, part in enumerate(path) if part.isdigit()]
        found.append(".".join(path[: places[-1] + 1]) if places else name)
    if not found:
        raise ValueError(f"{_OWNER}: model has no converted attention; call replace_attention first.")
    return list(dict.fromkeys(found))


class _LowRank(nn.Module):
    """A weight with a change of low rank."""

    def __init__(self, weight: Tensor, rank: int, generator: torch.Generator | None) -> None:
        super().__init__()
        device = weight.device if generator is None else generator.device
        start = torch.randn(rank, weight.shape[1], generator=generator, device=device) * weight.shape[1] ** -0.5
        self.A = nn.Parameter(start.to(weight))
        self.B = nn.Parameter(weight.new_zeros(weight.shape[0], rank))

    def forward(self, weight: Tensor) -> Tensor:
        """W + BA, in its own precision."""
        with torch.autocast(weight.device.type, enabled=False):
            return weight + self.B @ self.A


@contextmanager
def _adapted(
    model: nn.Module, blocks: list[str], rank: int | None, generator: torch.Generator | None
) -> Iterator[list[nn.Parameter]]:
    """What is trained; adapters are added to the weights at the end, and everything else asks for gradients as before."""
    asked = {name: weight.requires_grad for name, weight in model.named_parameters()}
    linear: dict[int, tuple[nn.Module, str]] = {}
    for block in blocks:
        for module in model.get_submodule(block).modules():
            for name, weight in module.named_parameters(recurse=False):
                if weight.ndim == 2 and weight.is_floating_point() and "weight" in name:
                    linear[id(weight)] = module, name
    orders = [(module, list(module._parameters)) for module, _ in linear.values()]
    model.requires_grad_(False)
    try:
        trained: list[nn.Parameter] = []
        for module, name in linear.values():
            weight = getattr(module, name)
            if rank is None:
                trained.append(weight.requires_grad_())
            else:
                change = _LowRank(weight, min(rank, *weight.shape), generator)
                parametrize.register_parametrization(module, name, change)
                trained += [change.A, change.B]
        yield trained
    finally:
        for module, name in linear.values():
            if parametrize.is_parametrized(module, name):
                original = module.parametrizations[name].original  # type: ignore[union-attr, index]
                merged = getattr(module, name).detach()
                parametrize.remove_parametrizations(module, name, leave_parametrized=False)
                with torch.no_grad():
                    original.copy_(merged)  # the same parameter object, so that optimizers keep working
        for module, names in orders:  # parameters come back behind the others
            module._parameters = {name: module._parameters[name] for name in names}
        for name, weight in model.named_parameters():
            weight.requires_grad_(asked[name])


def _states(model: nn.Module, batch: Any, blocks: list[str]) -> list[Tensor]:
    """Outputs of the blocks and, where the model has them, logits at the end."""
    found: dict[str, Tensor] = {}
    hooks = []
    for name in blocks:

        def keep(_: nn.Module, __: Any, out: Any, name: str = name) -> None:
            first = first_tensor(out)
            if first is not None:
                found[name] = first

        hooks.append(model.get_submodule(name).register_forward_hook(keep))
    try:
        out = run(model, batch, _OWNER)
    finally:
        for hook in hooks:
            hook.remove()
    logits = getattr(out, "logits", None)
    states = [found[name] for name in blocks if name in found]
    if not states:
        raise ValueError(f"{_OWNER}: the model ran without calling any block with converted attention.")
    return [*states, logits] if isinstance(logits, Tensor) else [*states, states[-1][..., :0]]


def _distance(states: list[Tensor], wanted: list[Tensor]) -> Tensor:
    """Mean relative squared error of hidden states, and the divergence of logits per token, or the change of embeddings."""
    errors = [
        (one - other).float().square().sum()
        / (other - other.mean(dim=tuple(range(other.ndim - 1)), keepdim=True)).float().square().sum().clamp(min=1e-30)
        for one, other in zip(states[:-1], wanted[:-1], strict=True)
    ]
    total = torch.stack(errors).mean()
    if wanted[-1].shape[-1]:
        one, other = (x.float().log_softmax(-1).flatten(0, -2) for x in (states[-1], wanted[-1]))
        return total + functional.kl_div(one, other, log_target=True, reduction="batchmean")
    one, other = (x[-2].float().mean(dim=-2) for x in (states, wanted))
    return total + _EMBEDDING * (1 - functional.cosine_similarity(one, other, dim=-1)).mean()
