"""The cells of the table of unbounded means: shapes of data, sizes and promises."""

from __future__ import annotations

import math
from dataclasses import dataclass

from muhat.studies.samples import SHAPES


@dataclass(frozen=True)
class Cell:
    """One line of the table: a shape of data, and the promise."""

    name: str
    n: int
    dim: int
    rho: float = 0.5

    @property
    def label(self) -> str:
        """What a pattern of the command line matches, and the seed of the records."""
        return f"{self.name} n={self.n} d={self.dim} rho={self.rho:g}"

    def runs(self, trials: int) -> int:
        """How often it is run: the fewer coordinates, the more an error varies."""
        steps = ((2, 8.0), (8, 3.0), (32, 1.5), (128, 1.0), (math.inf, 0.25))
        return math.ceil(trials * next(times for most, times in steps if self.dim <= most))


NORMALS, OTHERS = list(SHAPES)[:3], list(SHAPES)[3:]
QUICK = [Cell(name, 4000, 32) for name in SHAPES]
GRID = [
    *[Cell(name, 4000, dim) for name in NORMALS for dim in (2, 8, 32, 128, 512, 1024)],
    *[Cell(name, 4000, dim) for name in OTHERS for dim in (2, 8, 32, 128)],
    *[Cell("normal", n, dim) for n in (200, 500, 1000, 20_000, 100_000) for dim in (8, 128)],
    *[Cell("normal", 4000, dim, rho) for rho in (0.02, 0.1, 2.0) for dim in (8, 128)],
    Cell("normal", 4000, 1),
    Cell("normal", 200, 2, 2.0),
    Cell("normal + 1000", 200, 8, 2.0),
    Cell("normal + 1000", 500, 32),
    Cell("κ = 1000", 500, 8),
    Cell("κ = 1000", 20_000, 128, 0.1),
    Cell("t₃", 500, 8),
    Cell("t₃", 100_000, 32),
    Cell("lognormal", 500, 32),
    Cell("lognormal", 4000, 128, 0.02),
    Cell("lognormal", 4000, 32, 2.0),
    Cell("lognormal", 100_000, 8),
    Cell("exponential ray", 500, 2, 2.0),
    Cell("exponential ray", 1000, 32, 0.1),
    Cell("5 % far cluster", 500, 8),
    Cell("5 % far cluster", 1000, 32),
    Cell("5 % far cluster", 100_000, 32, 0.02),
    Cell("integers", 20_000, 8, 0.02),
    Cell("constant", 500, 8),
]
"""One axis at a time around n = 4000 and ρ = ½, and corners."""

PAPER = [Cell(name, 4000, dim) for name in OTHERS[:3] for dim in (2, 8, 32, 128)]
"""N(0, Σ(κ)), for COINPRESS with a covariance that it must learn."""

DIGITS = [(digit, rho) for digit in (0, 1, 8) for rho in (0.1, 0.5)]
"""Which handwritten digits, with which promise."""
