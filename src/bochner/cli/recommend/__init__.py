"""The command ``bochner recommend``."""
