"""
How many features does an error take?
=====================================

``bochner.recommend`` ranks mechanisms on the rows of a table by the error of the kernel, and
says how many features each one needs for a tolerance. The widths differ by more than the
mechanisms' names suggest.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

import bochner

X = load_wine().data
X = (X - X.mean(axis=0)) / X.std(axis=0)
advice = bochner.recommend(X, kernel="matern-3/2", n_features=128, rng=0)
print(advice)

# %%
# The errors of the ranking, in a picture.
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
advice.plot(ax)
plt.show()
