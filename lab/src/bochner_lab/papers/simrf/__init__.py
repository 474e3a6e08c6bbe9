"""Experiments of Simplex Random Features."""
