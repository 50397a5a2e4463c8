"""Noisy searches on exact counts."""
