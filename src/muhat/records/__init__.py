"""Records by columns, and exact work on them: what kernels are made of."""
