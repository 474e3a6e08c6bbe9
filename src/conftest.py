"""Doctests of adapters are run by tests/adapters, where the packages that they serve are installed."""

collect_ignore = ["bochner/adapters/_gpytorch.py", "bochner/adapters/_botorch.py"]
