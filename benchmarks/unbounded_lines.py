"""What is measured in a cell of the table of unbounded means, and how a line of it reads."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import muhat as mh
from benchmarks.hindsight import hindsight_error
from benchmarks.unbounded_cells import Cell
from muhat.studies.coinpress import coinpress_mean
from muhat.studies.samples import SampleShape

Floats = NDArray[np.float64]
Generator = np.random.Generator
Run = Callable[[Floats, float, Generator], Floats]

MAGNITUDE = 1e4
ROUNDS = (1, 2, 3, 4, 10)

MOST_WORSE, MOST_SPREAD = 1.03, 5.0
"""More, in the ratio to the best baseline or of the worst trial to the median, is remarked on."""


@dataclass(frozen=True)
class Line:
    """What was measured in a cell: the errors of every estimator, by name, ours as "muhat"."""

    cell: Cell
    errors: dict[str, Floats]
    ball: float
    enough: bool

    @property
    def ours(self) -> Floats:
        return self.errors["muhat"]

    def best(self, *kinds: str) -> tuple[float, str]:
        """The least root mean square among the estimators of these kinds, and whose it is."""
        found = [(rms(e), name) for name, e in self.errors.items() if name.split()[0] in kinds]
        return min(found, default=(math.inf, "-"))

    @property
    def baseline(self) -> str:
        """The best of all others."""
        return self.best("Shifted", "blind", "oracle")[1]

    @property
    def ratio(self) -> float:
        """Our root mean square beside that of the best baseline."""
        return rms(self.ours) / rms(self.errors[self.baseline])

    @property
    def ratio_deviation(self) -> float:
        """The standard error of the ratio; trials are paired."""
        ours, theirs = self.ours**2, self.errors[self.baseline] ** 2
        differences = ours / ours.mean() - theirs / theirs.mean()
        return self.ratio * float(differences.std()) / (2 * math.sqrt(len(ours)))

    @property
    def remarks(self) -> list[str]:
        """What the reader should look at."""
        few = [] if self.enough else ["few"]
        worse = [f"worse than {self.baseline}"] if self.ratio > MOST_WORSE else []
        other = f"spread ({self.baseline}: {spread(self.errors[self.baseline]):.1f})"
        return few + worse + ([other] if spread(self.ours) > MOST_SPREAD else [])

    @property
    def text(self) -> str:
        """The line of the table."""
        cell, ours = self.cell, self.ours
        text = f"  {cell.name:<16}{cell.n:>7}{cell.dim:>6}{cell.rho:>6g}{len(ours):>6}"
        text += f"{rms(ours):>10.3g}{trimmed(ours):>10.3g}{spread(ours):>7.2f}{self.ball:>10.3g}"
        for kind in ("Shifted", "blind", "oracle"):
            least, name = self.best(kind)
            text += f"{least:>10.3g}" if math.isfinite(least) else f"{'-':>10}"
            text += "" if kind == "Shifted" else f"{name.split()[-1]:>4}"
        text += f"{self.ratio:>8.2f} ±{self.ratio_deviation:.2f}"
        return f"{text}  {', '.join(self.remarks)}".rstrip()


HEADER = (
    f"  {'data':<16}{'n':>7}{'d':>6}{'ρ':>6}{'runs':>6}{'RMS':>10}{'trimmed':>10}{'w/m':>7}"
    f"{'ball':>10}{'Shifted':>10}{'blind':>10}{'t':>4}{'oracle':>10}{'t':>4}{'ratio':>8}"
)


def rms(errors: Floats) -> float:
    """The root mean square."""
    return float(np.sqrt(np.mean(errors**2)))


def trimmed(errors: Floats) -> float:
    """The mean without the smallest and the largest tenth."""
    cut = len(errors) // 10
    return float(np.sort(errors)[cut : len(errors) - cut].mean())


def spread(errors: Floats) -> float:
    """The worst trial beside the median."""
    return float(errors.max() / np.median(errors))


def coinpress(dim: int, rounds: int, scale: float) -> Run:
    """COINPRESS with the public inputs of every other estimator, and a scale."""
    radius = MAGNITUDE * math.sqrt(dim)
    return lambda rows, rho, generator: coinpress_mean(
        rows, rho, radius=radius, rounds=rounds, generator=generator, scale=scale
    )


def measure(cell: Cell, shape: SampleShape, trials: int) -> Line:
    """The errors of so many trials, each with records of its own from a fixed seed."""
    domain, promise = mh.Reals(cell.dim, MAGNITUDE), mh.ZCDP(rho=cell.rho)
    plan = mh.plan_mean(domain=domain, n=cell.n, privacy=promise, insist=True)
    shifted = mh.plan_mean(
        domain=domain, n=cell.n, privacy=promise, mechanism="shifted-clipped", insist=True
    )
    scale = shape.scale(cell.dim)
    compared: dict[str, Run] = {
        "muhat": lambda rows, rho, generator: plan.release(rows).value,
        "Shifted": lambda rows, rho, generator: shifted.release(rows).value,
        **{f"blind {t}": coinpress(cell.dim, t, 1.0) for t in ROUNDS},
        **{f"oracle {t}": coinpress(cell.dim, t, scale) for t in ROUNDS if scale != 1.0},
    }
    errors: dict[str, list[float]] = {name: [] for name in compared}
    balls = []
    for trial in range(trials):
        generator = np.random.default_rng([zlib.crc32(cell.label.encode()), trial])
        rows = shape.draw(generator, cell.n, cell.dim)
        exact = rows.mean(axis=0)
        for name, run in compared.items():
            found = run(rows, cell.rho, generator)
            errors[name].append(float(np.linalg.norm(found - exact)))
        balls.append(hindsight_error(rows, cell.rho))
    measured = {name: np.array(values) for name, values in errors.items()}
    return Line(cell, measured, rms(np.array(balls)), cell.n >= plan.least_n)


def summary(lines: Iterable[Line]) -> str:
    """All cells with enough records at once; constant ones, which cost next to nothing, apart."""
    counted = [line for line in lines if line.enough and line.cell.name != "constant"]
    if not counted:
        return "  (no cell with enough records that differ)"
    ratios = np.array([line.ratio for line in counted])
    worst = counted[int(ratios.argmax())]
    above = sum(ratio > MOST_WORSE for ratio in ratios)
    wide = sum(spread(line.ours) > MOST_SPREAD for line in counted)
    return (
        f"  {len(counted)} cells with enough records, constant ones apart: geometric mean of the "
        f"ratios {np.exp(np.log(ratios).mean()):.2f},\n  worst {ratios.max():.2f} "
        f"({worst.cell.label}); {above} above {MOST_WORSE}, {wide} with a spread above "
        f"{MOST_SPREAD:g}"
    )
