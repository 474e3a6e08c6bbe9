"""The linear engine: regression and classification on features, from sums over rows.

- `moments`: means and second moments of features and targets, which add;
- `feature_moments`: those of the features of rows, wherever the rows are;
- `spectrum`: the linear equations that they make, solved stably, and their eigenvectors;
- `tiles`, `nystrom`, `conjugate_gradients`: the same solution on wide features, in passes that forget them;
- `ridge`: ridge regression, and how its regularisation is chosen;
- `posterior`, `evidence`, `stochastic_evidence`: a Gaussian process and its marginal likelihood, exact or estimated;
- `likelihoods`, `laplace`: classes by Laplace's approximation.
"""
