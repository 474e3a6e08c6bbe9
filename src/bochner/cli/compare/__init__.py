"""The command ``bochner compare``: every mechanism measured on the user's data, and a report of it."""
