"""Noise on integer sums of bounded records."""
