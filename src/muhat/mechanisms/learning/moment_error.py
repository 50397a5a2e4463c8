"""How far a private mean may lie from the mean of the population, if a moment is as assumed.

A value is the mean of n clipped records and noise. Whatever interval the records were clipped to,
two fixed ones bound what comes out from both sides, unless the search for it failed; on each the
records are independent, their bias and their variance are bounded by the moment, and none lies
far above its expectation. Bennett's and Cantelli's inequalities bound the sampling error, the law
of the noise is known: together they bound how often the error exceeds a length, for every n.
Proof: docs/proofs/tails.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.noise.spread import Spread

STEPS = 200
"""How many quantiles stand for the law of the noise; more make intervals shorter by less."""

REST = 1e-3
"""The part of the misses that is left to noise beyond the last of them."""

_SAFE = 1 + 1e-9
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class MomentError(Plain):
    """What is known of the mean of `records` records clipped somewhere, against μ; columns (d,).

    `biases` bound how far the expectations of the two bounding means are from μ, `variances`
    those of a record, `heights` by how much one may exceed its expectation. All of that holds but
    for the probability `failed`, in each column.
    """

    moment: Moment
    records: int
    biases: Floats
    variances: Floats
    heights: Floats
    failed: Floats

    def __post_init__(self) -> None:
        _check.count("records", self.records)

    def half_widths(self, noise: Spread, confidence: float, *, joint: bool) -> Floats:
        """Half the length of an interval about each value that holds μ, of shape (d,).

        At least with this confidence, for every n; with `joint` for all columns at once.
        """
        miss = 1 - confidence
        failed = np.full_like(self.failed, self.failed.sum()) if joint else self.failed
        if not self.tells(confidence, joint=joint):
            raise InvalidInput(
                "nothing follows about the population at this confidence: where the records lie "
                f"may be mistaken with a probability of up to {min(1.0, float(failed.max())):.2g}."
            )
        columns = len(self.biases) if joint else 1
        allowed = (miss - failed) / (2 * columns)
        rest = REST * float(allowed.min())
        tails = np.geomspace(0.5, rest, STEPS)
        reaches = np.array([noise.law.quantile(1 - 2 * tail, noise.rows) for tail in tails[1:]])
        places = noise.scales[:, None] * np.append(0.0, reaches)
        masses = np.append(0.5, tails[:-1] - tails[1:])

        def missed(lengths: Floats) -> Floats:
            """P(sampling error and noise exceed the lengths, to one side), at most."""
            return np.asarray(self._exceeds(lengths[:, None] - places) @ masses + rest)

        low, high = np.zeros(len(places)), places[:, -1] + np.sqrt(self.variances)
        while not (missed(high) <= allowed).all():
            high = high * 2
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            enough = missed(middle) <= allowed
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.asarray((self.biases + high) * _SAFE)

    def tells(self, confidence: float, *, joint: bool = False) -> bool:
        """Whether anything follows at this confidence."""
        failed = float(self.failed.sum() if joint else self.failed.max())
        return failed < 1 - confidence and bool(np.isfinite(self.biases).all())

    def _exceeds(self, lengths: Floats) -> Floats:
        """P(a bounding mean exceeds its expectation by a length), at most; of shape (d, steps)."""
        variances, heights = self.variances[:, None], self.heights[:, None]
        above = np.maximum(lengths, 0.0)
        ratios = heights * above / variances
        bennett = np.exp(
            -self.records * variances / heights**2 * ((1 + ratios) * np.log1p(ratios) - ratios)
        )
        spread = variances / self.records
        return np.asarray(np.minimum(bennett, spread / (spread + above**2)) * _SAFE)


@dataclass(frozen=True, eq=False)
class Moment(Plain):
    """E|X_j − μ_j|^order ≤ scales_j^order for every column j; an assumption nobody can check."""

    order: float
    scales: Floats

    def describe(self) -> str:
        """The assumption, as a condition."""
        sizes = [f"{scale:g}" for scale in self.scales]
        shown = (
            sizes[0]
            if len(set(sizes)) == 1
            else f"({', '.join(sizes[:5])}{', …' * (len(sizes) > 5)})"
        )
        if self.order == 2:
            return f"the standard deviation is at most {shown}"
        return f"E|X − μ|^{self.order:g} ≤ ψ^{self.order:g} with ψ = {shown}"
