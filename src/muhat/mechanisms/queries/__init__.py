"""Noise on linear queries: strategies, residuals, running sums."""
