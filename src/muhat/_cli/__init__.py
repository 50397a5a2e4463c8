"""The command line, a module for each group; click and rich are imported nowhere else."""
