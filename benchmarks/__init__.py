"""Ratios measured in one run; nothing is asserted. `make bench`, or `python -m benchmarks`."""
