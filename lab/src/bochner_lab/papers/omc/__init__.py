"""Experiments of Unifying Orthogonal Monte Carlo Methods."""
