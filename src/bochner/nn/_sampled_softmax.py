"""Training with many classes, on a few of them at a time."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .._arrays import in_working_precision
from .._validation import check_count, check_flag, check_option, check_positive
from ..approximation import Approximation
from ._attention_checks import check_generator
from ._checkpoint import LoadsWhole
from ._class_logits import ClassLogits, unit
from ._class_sampling import ClassSample, ClassSampler, KernelSampler, SoftmaxSampler, UniformSampler, checked_share
from ._drawn import DrawnFeatures
from ._head_spec import attention_spec

SAMPLERS = ("kernel", "uniform", "softmax")
_OWNER = "SampledSoftmax"
_CALIBRATION_ROWS = 256  # random rows from which constants are chosen


class SampledSoftmax(LoadsWhole, ClassLogits):
    r"""Cross-entropy over many classes, trained on negatives drawn by random features (HRF Section 4.2 and I.1).

    Use it as the loss of a model with very many classes, in place of a linear layer and ``nn.CrossEntropyLoss``.  Call
    `update` after each step of the optimizer.  Checkpoints contain the vectors and the draw; the tree of sums is
    rebuilt on first use.

    Parameters
    ----------
    embedding_dim : int
        Width d of queries and classes.
    n_classes : int
        Number n of classes, at least 2.
    n_samples : int
        Number m of negatives per query.
    spec : Approximation or str, optional
        What to draw, for `kernels.Softmax` with scale 1, or the name of a mechanism such as "favor++"; by default 256
        rows of the best map and projection for softmax.
    sampler : {"kernel", "uniform", "softmax"}
        Law of the negatives: estimated by random features, uniform, or the exact softmax in O(n d).  The latter two are
        for comparison and ignore the parameters of the features.
    normalize : bool
        Whether logits are computed from unit vectors, :math:`o_i = \tau\,\hat h\cdot\hat c_i`.
    scale : float
        The factor :math:`\tau` of the logits, an inverse temperature.
    normalize_sampling : bool, optional
        Whether the features are computed from unit vectors even if the logits are not, as in HRF I.1: a worse proposal
        if norms differ, but features of lower variance.  By default the same as ``normalize``.
    sampling_scale : float, optional
        The scale of the kernel that is estimated, by default ``scale``.
    uniform_share : float
        Share of negatives drawn uniformly, between 0 and 1.
    bias : bool
        Whether classes have biases.
    sparse : bool
        Whether gradients of the vectors and biases are sparse tensors.
    reduction : {"mean", "sum", "none"}
        How the losses of a batch are reduced.
    ignore_index : int
        Target of rows that have no loss.
    generator : torch.Generator, optional
        Source of randomness of the features and of the initial vectors.
    device, dtype : optional
        Device and type of the parameters.

    Attributes
    ----------
    weight : Parameter (n_classes, embedding_dim)
        Class vectors; may be tied to an input embedding by assignment.
    bias : Parameter (n_classes,) or None
        Class biases.

    Notes
    -----
    The logit of class i is :math:`o_i = \tau\,h\cdot c_i + b_i`.  For each query m negatives other than the true class
    t are drawn, independently and with replacement, from a law q, and the loss is

    .. math:: -o_t + \log\Big(e^{o_t} + \sum_{j\le m} e^{o_{s_j} - \log(m q_{s_j})}\Big),

    the softmax loss on corrected logits: the sum over the negatives is an unbiased estimate of that over all classes.
    Its expected gradient tends to that of the full loss as m grows, and equals it for every m where q is the softmax
    itself.  Random features come close to that law in O(D log n) per sample: :math:`q_i \propto \phi(h)\cdot\phi(c_i)`,
    drawn by descending a binary tree of sums of features, from which the true class is left out exactly.

    *The probabilities are exact for every map.*  Features with signs (trigonometric, hybrid) can give a subtree a
    negative sum.  Such a subtree counts as zero, a node whose subtrees are all zero divides by numbers of classes, and
    a share of the samples (``uniform_share``) is drawn uniformly, which bounds the weight of any sample; all of this is
    part of q, which is the law by which samples are drawn and the one by which logits are corrected.

    *After each step of the optimizer* call `update`, which recomputes the features of the classes that were in the loss
    since the last update.  An optimizer that also moves other classes (momentum, weight decay, Adam with dense
    gradients) leaves their features outdated until `rebuild`.  This makes q a worse proposal, but the loss stays
    correct, since logits are corrected by the law of the tree.  With ``sparse=True`` and `torch.optim.SGD` or
    `SparseAdam` only classes in the loss move.

    References
    ----------
    hrf (Section 4.2, I.1), rawat2019, blanc2018.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import SampledSoftmax
    >>> loss = SampledSoftmax(8, 1000, n_samples=20, spec="favor+", generator=torch.Generator().manual_seed(0))
    >>> h, targets = torch.randn(4, 8), torch.tensor([3, 1, 4, 1])
    >>> loss(h, targets).backward()
    >>> loss.update()                                           # after optimizer.step()
    >>> every = torch.arange(1000).expand(4, -1)
    >>> bool(torch.allclose(loss.log_proposal(h, every).exp().sum(-1), torch.ones(4)))
    True
    """

    _sampler: ClassSampler | None
    _touched: Tensor

    def __init__(
        self,
        embedding_dim: int,
        n_classes: int,
        n_samples: int = 64,
        *,
        spec: Approximation | str | None = None,
        sampler: str = "kernel",
        normalize: bool = False,
        scale: float = 1.0,
        normalize_sampling: bool | None = None,
        sampling_scale: float | None = None,
        uniform_share: float = 0.01,
        bias: bool = False,
        sparse: bool = False,
        reduction: str = "mean",
        ignore_index: int = -100,
        generator: torch.Generator | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            embedding_dim,
            n_classes,
            normalize=normalize,
            scale=scale,
            bias=bias,
            sparse=sparse,
            reduction=reduction,
            ignore_index=ignore_index,
            device=device,
            dtype=dtype,
        )
        check_generator(_OWNER, generator)
        self.n_samples = check_count(_OWNER, "n_samples", n_samples)
        check_option(_OWNER, "sampler", sampler, SAMPLERS)
        self.sampler, self.uniform_share = sampler, checked_share(_OWNER, uniform_share)
        self.normalize_sampling = normalize if normalize_sampling is None else normalize_sampling
        check_flag(_OWNER, "normalize_sampling", self.normalize_sampling)
        scale = self.scale if sampling_scale is None else check_positive(_OWNER, "sampling_scale", sampling_scale)
        self.sampling_scale = scale
        self.spec = attention_spec(_OWNER, spec, softmax_only=True)
        self.reset_parameters(generator)
        self.features = self._drawn(generator) if sampler == "kernel" else None
        touched = torch.zeros(n_classes, dtype=torch.bool, device=device)
        self.register_buffer("_touched", touched, persistent=False)
        self.redraw(generator=generator)

    def forward(self, h: Tensor, targets: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The sampled loss.

        Parameters
        ----------
        h : Tensor (..., d)
            Queries.
        targets : Tensor (...) of int64
            True classes, or ``ignore_index``.
        generator : torch.Generator, optional
            Source of randomness of the negatives.

        Returns
        -------
        Tensor
            A number, or the loss of each row with ``reduction="none"``, zero where it is ignored.
        """
        check_generator(_OWNER, generator)
        rows, targets, kept = self.enter(h, targets)
        negatives = self.sample(rows, targets, generator=generator)
        classes = torch.cat([targets[:, None], negatives.classes], dim=1)
        logits = self.logits_of(rows, classes)
        correction = F.pad(negatives.log_prob + math.log(self.n_samples), (1, 0))
        losses = F.cross_entropy(logits - correction.to(logits.dtype), torch.zeros_like(targets), reduction="none")
        if torch.is_grad_enabled():
            self._touched[classes.flatten()] = True
        return self.reduced(losses, kept)

    @torch.no_grad()
    def sample(
        self,
        h: Tensor,
        targets: Tensor | None = None,
        n_samples: int | None = None,
        generator: torch.Generator | None = None,
    ) -> ClassSample:
        """Classes drawn for the queries h (batch, d), other than ``targets`` (batch,), with their log probabilities."""
        n_samples = self.n_samples if n_samples is None else check_count(f"{_OWNER}.sample", "n_samples", n_samples)
        X = self._query_rows(self.checked_queries("sample", h, matrix=True))
        check_generator(f"{_OWNER}.sample", generator)
        if targets is not None:
            self.check_classes("sample", "targets", targets, tuple(h.shape[:-1]))
        return self.proposal.sample(X, n_samples, targets, generator)

    @torch.no_grad()
    def log_proposal(self, h: Tensor, classes: Tensor, targets: Tensor | None = None) -> Tensor:
        """Logarithms of the probabilities q with which ``classes`` (batch, k) are drawn for the queries h (batch, d)."""
        X = self._query_rows(self.checked_queries("log_proposal", h, matrix=True))
        self.check_classes("log_proposal", "classes", classes, (*h.shape[:-1], None))
        if targets is not None:
            self.check_classes("log_proposal", "targets", targets, tuple(h.shape[:-1]))
        return self.proposal.log_prob(X, classes, targets)

    @torch.no_grad()
    def update(self, indices: Tensor | None = None) -> None:
        """Recompute the features of classes whose vectors have changed, in O(k D log n).

        Parameters
        ----------
        indices : Tensor of int64, optional
            Which classes; by default those that were in a loss since the last update.
        """
        if indices is not None:
            self.check_classes("update", "indices", indices, (None,))
        changed = self._touched.nonzero().flatten() if indices is None else torch.unique(indices)
        if self._sampler is not None and len(changed):
            self._sampler.refresh(changed)
        self._touched[changed] = False

    def rebuild(self) -> None:
        """Recompute the features of all classes, in O(n D), when the sampler is used next."""
        self._sampler = None
        self._touched.zero_()

    @torch.no_grad()
    def redraw(self, queries: Tensor | None = None, generator: torch.Generator | None = None) -> None:
        """Draw new features; the tree is rebuilt when it is used next.

        Parameters
        ----------
        queries : Tensor (..., d), optional
            Queries to which a map that chooses constants from data adapts; by default the classes.
        generator : torch.Generator, optional
            Source of randomness.
        """
        check_generator(f"{_OWNER}.redraw", generator)
        classes = self._sampling_rows(self.weight)
        X = classes if queries is None else self._sampling_rows(self.checked_queries("redraw", queries)).flatten(0, -2)
        if self.features is not None:
            self.features.redraw(generator)
            self.features.fit(*(_some(rows, generator)[None] for rows in (X, classes)))
        self.rebuild()

    @property
    def proposal(self) -> ClassSampler:
        """The law of the negatives, built when first asked for."""
        if self._sampler is None:
            with torch.no_grad():
                self._sampler = self._build()
        return self._sampler

    def extra_repr(self) -> str:
        """Arguments that the module was built from."""
        sizes = f"{self.embedding_dim}, {self.n_classes}, n_samples={self.n_samples}"
        return f"{sizes}, sampler={self.sampler!r}, spec={self.spec!r}"

    def _build(self) -> ClassSampler:
        if self.features is not None:
            return KernelSampler(self.features.current, self.n_classes, self._class_rows, self.uniform_share)
        if self.sampler == "uniform":
            return UniformSampler(self.n_classes)
        return SoftmaxSampler(self.working_logits)

    def _drawn(self, generator: torch.Generator | None) -> DrawnFeatures:
        dtype = torch.float64 if self.weight.dtype == torch.float64 else torch.float32
        drawn = DrawnFeatures(self.spec, self.embedding_dim, dtype=dtype, generator=generator)
        drawn.to(self.weight.device)
        return drawn

    def _class_rows(self, indices: Tensor) -> tuple[Tensor, Tensor | None]:
        return self._sampling_rows(self.weight[indices]), None if self.bias is None else self.bias[indices]

    def _query_rows(self, h: Tensor) -> Tensor:
        """Queries as the sampler sees them: exact logits have the scale and the unit length in them already."""
        return self._sampling_rows(h) if self.sampler == "kernel" else in_working_precision(h.detach())

    def _sampling_rows(self, rows: Tensor) -> Tensor:
        """Rows as the features see them: at unit scale, at least in float32."""
        rows = in_working_precision(rows.detach())
        return math.sqrt(self.sampling_scale) * (unit(rows) if self.normalize_sampling else rows)

    def _apply(self, fn: Any, recurse: bool = True) -> SampledSoftmax:
        super()._apply(fn, recurse)
        self._sampler = None  # it is of another type or device
        return self

    def _load_from_state_dict(self, *arguments: Any, **options: Any) -> None:
        super()._load_from_state_dict(*arguments, **options)
        self.rebuild()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_sampler": None}  # built again when needed


def _some(rows: Tensor, generator: torch.Generator | None) -> Tensor:
    """Some of the rows, drawn with replacement: to choose constants from."""
    device = "cpu" if generator is None else generator.device
    return rows[torch.randint(len(rows), (_CALIBRATION_ROWS,), generator=generator, device=device).to(rows.device)]
