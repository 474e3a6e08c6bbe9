"""``bochner bench``: ratios measured in one run against named peers."""
