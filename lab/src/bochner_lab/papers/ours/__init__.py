"""Experiments of our own, on questions that the papers leave open."""
