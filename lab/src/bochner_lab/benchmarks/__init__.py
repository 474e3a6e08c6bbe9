"""Benchmarks: one module per suite, whose ``run`` yields measured lines, each with what it is compared with and its goal."""
