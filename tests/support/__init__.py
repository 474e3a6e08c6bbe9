"""Helpers that several test files share; each module is imported as ``support.<name>``."""
