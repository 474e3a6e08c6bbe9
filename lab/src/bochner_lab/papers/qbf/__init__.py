"""Experiments of Quadrature-based Features for Kernel Approximation."""
