"""Exact roots, products, convolutions and roundings."""
