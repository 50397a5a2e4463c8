"""What users call the ways to a mean of records that nobody has bounded."""

from __future__ import annotations

from muhat.noise.kinds import NoiseKind

PAPERS = ("clipped", "shifted-clipped", "statistical")
"""Estimators for records in Reals as Huang, Liang and Yi (2021) have them."""

CLIPPED = {NoiseKind.PURE: "clipped-laplace", NoiseKind.NORMAL: "clipped-normal"}
SYMMETRIC = ("symmetric", "karwa-vadhan")
LOW_BIAS = (*CLIPPED.values(), *SYMMETRIC)
"""Mechanisms whose bias is bounded."""

PRINTED = ("clipped-laplace", "symmetric")
"""Those of them that Kamath et al. (2024) have; others are ours, or of somebody else."""

AS_PRINTED = ", as printed"
"""What is added to the name of a mechanism that is kept as a paper has it."""
