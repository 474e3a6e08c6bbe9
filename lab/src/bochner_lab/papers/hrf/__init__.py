"""Experiments of Hybrid Random Features."""
