"""Experiments of Demystifying Orthogonal Monte Carlo and Beyond."""
