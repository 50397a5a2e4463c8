"""Means of records that nobody has bounded: where they lie is learnt first."""
