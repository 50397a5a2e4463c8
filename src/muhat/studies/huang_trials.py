"""What the studies of Huang, Liang and Yi share: estimators, trials, rows and their figures.

A row is an estimator in a cell: a figure with one place on its x axis. `error` is the paper's
metric, the mean of ℓ₂ errors without the smallest and the largest tenth of the trials, against the
population mean where there is one; `private` is the same against the empirical mean, which is what
privacy costs; `rms` and `private_rms` are root mean squares, which do not hide a rare failure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, default_rng

from muhat._arrays import Floats
from muhat.domains import Reals
from muhat.planning import Plan, plan_mean
from muhat.privacy import ZCDP
from muhat.studies.coinpress import coinpress_mean, coinpress_whitened_mean
from muhat.studies.drawing import Line, lines
from muhat.studies.study import Cell as Value
from muhat.studies.study import Panel, Row, Rows, where

Run = Callable[[Floats, Generator], Floats]

PAPER = (
    "Huang, Liang, Yi: Instance-optimal mean estimation under differential privacy, NeurIPS 2021"
)
NOISE = (
    "muhat's default, Shifted-CM and CM are releases with muhat's exact noise, which has no seed, "
    "so that digits differ from run to run; records have seeds; COINPRESS is idealised (floats and "
    "a seeded generator)."
)
MUHAT, SHIFTED, CLIPPED, PLAIN = "muhat", "Shifted-CM", "CM", "non-private"
KNOWN, LEARNT = "COINPRESS t = ", "learnt covariance t = "
TOLD = "told the scale t = "
ROUNDS, COVARIANCE_ROUNDS = (1, 2, 3, 4, 10), (1, 2, 3, 4, 5)
MECHANISMS = {MUHAT: None, SHIFTED: "shifted-clipped", CLIPPED: "clipped"}

TRIALS = 100
"""Of the paper. Few dimensions have as many at every level: there an error varies much."""

FAILURE = 0.05
"""The probability for which the paper's bound on the records is taken."""


@dataclass(frozen=True)
class TrialCell:
    """A place of a figure: its columns, the records of a trial, and what is public about them.

    `bound` is R/√d, which is also the largest deviation that estimators are told of. `mean` is the
    population mean in every coordinate, None if only the empirical mean counts. `scale` is what an
    oracle tells COINPRESS of the records' deviation. `straight` whitens errors for the Mahalanobis
    distance.
    """

    columns: Mapping[str, Value]
    draw: Callable[[Generator], Floats]
    n: int
    dim: int
    rho: float
    bound: float
    mean: float | None = None
    scale: float = 1.0
    straight: Floats | None = None

    @property
    def label(self) -> str:
        """The columns as text, by which rows of the same cell are found."""
        texts = (v if isinstance(v, str) else f"{k} = {v}" for k, v in self.columns.items())
        return ", ".join(texts)

    @property
    def magnitude(self) -> float:
        """No record is longer: R' of Section 3.4, or the bound itself where nothing is random."""
        if self.mean is None:
            return self.bound
        tail = math.sqrt(self.dim + math.log(4 * self.n / FAILURE))
        return self.bound * (math.sqrt(self.dim) + 2 * tail)


def trials(cell: TrialCell, names: Iterable[str], runs: int, seed: int) -> list[Row]:
    """A row for each estimator. All of them see the same records, new ones in every trial."""
    compared = {name: _estimator(name, cell) for name in names}
    misses: dict[str, list[list[float]]] = {name: [] for name in compared}
    for trial in range(runs):
        # Cells that differ in μ, ρ or R alone have the same deviations from the mean.
        key = [seed, cell.n, cell.dim, trial]
        rows = cell.draw(default_rng(key))
        empirical = rows.mean(axis=0)
        noise = default_rng([*key, 1])
        for name, run in compared.items():
            found = run(rows, noise)
            private = found - empirical
            whole = private if cell.mean is None else found - cell.mean
            turned = whole if cell.straight is None else whole @ cell.straight
            misses[name].append([float(np.linalg.norm(m)) for m in (whole, private, turned)])
    public: Row = {"n": cell.n, "d": cell.dim, "rho": cell.rho, "bound": cell.bound}
    return [
        {"cell": cell.label, **cell.columns, **public, "estimator": name, **_summary(name, cell, m)}
        for name, m in misses.items()
    ]


def _summary(name: str, cell: TrialCell, misses: list[list[float]]) -> Row:
    whole, private, turned = np.array(misses).T
    row: Row = {
        "trials": len(misses),
        "error": trimmed(whole),
        "rms": rms(whole),
        "private": trimmed(private),
        "private_rms": rms(private),
    }
    if cell.straight is not None:
        row["mahalanobis"] = trimmed(turned)
    if name in MECHANISMS:
        row["enough"] = cell.n >= _plan(name, cell).least_n
    return row


def _estimator(name: str, cell: TrialCell) -> Run:
    """The estimator of this name, with the public inputs of the cell."""
    if name == PLAIN:
        return lambda rows, noise: np.asarray(rows.mean(axis=0))
    if name in MECHANISMS:
        plan = _plan(name, cell)
        return lambda rows, noise: np.asarray(plan.release(rows).value)
    radius, rounds = cell.bound * math.sqrt(cell.dim), int(name.rpartition("= ")[2])
    if name.startswith(LEARNT):
        return lambda rows, noise: coinpress_whitened_mean(
            rows,
            cell.rho,
            radius=radius,
            largest=cell.bound,
            covariance_rounds=rounds,
            generator=noise,
        )
    scale = cell.scale if name.startswith(TOLD) else 1.0
    return lambda rows, noise: coinpress_mean(
        rows, cell.rho, radius=radius, rounds=rounds, generator=noise, scale=scale
    )


def _plan(name: str, cell: TrialCell) -> Plan:
    return plan_mean(
        domain=Reals(cell.dim, cell.magnitude),
        n=cell.n,
        privacy=ZCDP(rho=cell.rho),
        mechanism=MECHANISMS[name],
        insist=True,
    )


def runs_of(least: int, dim: int) -> int:
    """How often a cell is run.

    >>> runs_of(10, 8), runs_of(10, 512), runs_of(100, 512)
    (80, 10, 100)
    """
    return max(least, min(TRIALS, 640 // dim))


def trimmed(errors: Floats) -> float:
    """The mean without the smallest and the largest tenth."""
    cut = len(errors) // 10
    return float(np.sort(errors)[cut : len(errors) - cut].mean())


def rms(errors: Floats) -> float:
    """The root mean square."""
    return float(np.sqrt(np.mean(errors**2)))


def by_cell(rows: Rows, column: str = "error") -> dict[str, dict[str, float]]:
    """The numbers of a column by cell and estimator."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        found.setdefault(row["cell"], {})[row["estimator"]] = row[column]
    return found


def best(errors: Mapping[str, float], *kinds: str) -> float:
    """The least error among estimators of these kinds."""
    return min(error for name, error in errors.items() if name.startswith(kinds))


def ratios(rows: Rows, column: str, name: str, *kinds: str) -> list[float]:
    """In every cell the number of an estimator beside the best of the kinds, in hindsight."""
    return [errors[name] / best(errors, *kinds) for errors in by_cell(rows, column).values()]


LOOKS: dict[str, tuple[int | None, str, bool]] = {
    MUHAT: (0, "-", False),
    SHIFTED: (1, "-", False),
    CLIPPED: (2, "-", False),
    PLAIN: (None, "-", False),
    **{f"{KNOWN}{t}": (look, "--" if t == 10 else ":", True) for look, t in enumerate(ROUNDS, 3)},
    **{f"{TOLD}{t}": (look, "-.", False) for look, t in enumerate(ROUNDS, 3)},
    **{
        f"{LEARNT}{t}": (look, "--" if t == 5 else ":", True)
        for look, t in enumerate(COVARIANCE_ROUNDS, 3)
    },
}
"""Colour and marker, dashes, and whether the marker is hollow."""

LABELS = {
    MUHAT: "muhat's default",
    **{f"{TOLD}{t}": f"{KNOWN}{t}, told the scale" for t in ROUNDS},
}
X_LABELS = {
    "d": "dimension d",
    "rho": "ρ of zCDP",
    "bound": "R/√d, the bound on the mean",
}
NAMES = {"mu": "μ = ", "kappa": "κ = "}
DASHES = ("-", "--", ":")


def panel(
    title: str, rows: Rows, x: str, kinds: tuple[str, ...], *, y: str = "error", label: str = ""
) -> Panel:
    """Errors over a column, a line for each estimator of these kinds."""
    found = []
    for name, (look, dash, hollow) in LOOKS.items():
        chosen = sorted(where(rows, estimator=name), key=lambda row: float(row[x]))
        if chosen and name.startswith(kinds):
            places, heights = [row[x] for row in chosen], [row[y] for row in chosen]
            shown = LABELS.get(name, name.replace("learnt covariance t", "MVCRec t"))
            found.append(Line(shown, places, heights, look, dash, hollow))
    return lines(title, found, x=X_LABELS[x], y=label or "ℓ₂ error, trimmed mean")


def beside(
    title: str,
    rows: Rows,
    x: str,
    by: str,
    names: tuple[str, ...],
    *,
    kinds: tuple[str, ...] = (KNOWN, LEARNT),
) -> Panel:
    """Errors over a column beside those of COINPRESS at its best, a line for each value of `by`."""
    found = []
    for look, name in enumerate(names):
        for number, value in enumerate(dict.fromkeys(row[by] for row in rows)):
            chosen = where(rows, **{by: value})
            places = {row["cell"]: row[x] for row in chosen}
            quotients = dict(zip(places, ratios(chosen, "private_rms", name, *kinds), strict=True))
            order = sorted(places, key=lambda cell: float(places[cell]))
            label = f"{LABELS.get(name, name)}, {NAMES.get(by, '')}{_text(value)}"
            heights = [quotients[cell] for cell in order]
            xs = [places[cell] for cell in order]
            found.append(Line(label, xs, heights, look, DASHES[number % 3], number > 0))
    shown = "RMS error ÷ COINPRESS's best t"
    return lines(title, found, x=X_LABELS[x], y=shown, scale="semilogx", level=1)


def _text(value: object) -> str:
    return value if isinstance(value, str) else f"{value:g}"
