"""
Does a trained transformer survive conversion?
==============================================

A small transformer that was trained with softmax attention keeps its accuracy when its
attention is replaced by calibrated random features, without further training; features that do
not look at the data lose most of it. (For real language models read :doc:`/wrong_tool` first.)
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from bochner import mechanism
from bochner.nn import calibrate, replace_attention

torch.manual_seed(0)
data = load_digits()
order = np.random.default_rng(0).permutation(len(data.data))
images = torch.tensor(data.images[order] / 8 - 1, dtype=torch.float32)
tokens = (
    images.reshape(-1, 4, 2, 4, 2).transpose(2, 3).reshape(-1, 16, 4)
)  # 16 patches of 2 x 2 pixels
labels = torch.tensor(data.target[order])


class Classifier(nn.Module):
    """A transformer over the patches of an image."""

    def __init__(self):
        super().__init__()
        self.embed, self.positions = nn.Linear(4, 64), nn.Parameter(0.1 * torch.randn(16, 64))
        layer = nn.TransformerEncoderLayer(64, 2, 128, dropout=0.0, batch_first=True)
        self.encoder, self.head = (
            nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
            nn.Linear(64, 10),
        )

    def forward(self, tokens):
        """Scores of the ten digits."""
        return self.head(self.encoder(self.embed(tokens) + self.positions).mean(dim=1))


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), 2e-3)
for step in range(150):
    batch = torch.arange(64 * step, 64 * step + 64) % 1400
    loss = nn.functional.cross_entropy(model(tokens[batch]), labels[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()


def accuracy(model):
    """Share of correct predictions on 397 test images."""
    with torch.no_grad():
        return float((model(tokens[1400:]).argmax(dim=1) == labels[1400:]).float().mean())


# %%
# Convert, and test without training.
exact, rows = accuracy(model), (8, 64)
found = {"FAVOR+": [], "FAVOR++": [], "calibrated": []}
for m in rows:
    specs = {
        "FAVOR+": mechanism("favor+", n_projections=m),
        "FAVOR++": mechanism("favor++", n_projections=m),
    }
    specs["calibrated"] = calibrate(model, [tokens[:64]], n_projections=m)
    for name, spec in specs.items():
        generator = torch.Generator().manual_seed(0)
        draws = [
            accuracy(replace_attention(model, spec, copy=True, generator=generator))
            for _ in range(2)
        ]
        found[name].append(np.mean(draws))
print(
    f"softmax {exact:.3f}; {rows[-1]} rows: "
    + ", ".join(f"{name} {values[-1]:.3f}" for name, values in found.items())
)

figure, ax = plt.subplots(figsize=(6.5, 4.0), layout="constrained")
ax.axhline(exact, color="black", linestyle="--", label="softmax")
for name, values in found.items():
    ax.plot(rows, values, "o-", label=name)
ax.set(
    xscale="log", xlabel="rows of W per head", ylabel="accuracy on test images", ylim=(0, 1.02)
)
ax.set_xticks(rows, rows)
ax.minorticks_off()
ax.legend()
plt.show()
