"""Every public callable with hostile arguments: a clear refusal or a right answer, and nothing else."""
