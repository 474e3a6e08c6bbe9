"""``bochner info``: what is installed, and every projection at work."""
