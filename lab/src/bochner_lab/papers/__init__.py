"""The experiments: one folder per paper, one file per figure, table or theorem; files with an underscore serve several."""
