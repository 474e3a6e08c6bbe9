"""Experiments of Chefs' Random Tables."""
