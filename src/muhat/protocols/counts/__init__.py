"""Quantiles and counts of ranges in the local and the shuffle model."""
