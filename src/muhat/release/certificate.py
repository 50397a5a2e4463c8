"""How good a plan is against everything possible."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._text import page
from muhat.bounds import LowerBound
from muhat.bounds.lower_bound import rounded_down
from muhat.domains import Domain


@dataclass(frozen=True, repr=False)
class Certificate:
    """What a plan achieves, beside what no mechanism of a class can beat.

    A function of public parameters alone. A bound whose constant is not known has the value
    None, and takes no part in the ratios. `error` is the root of the mean squared ℓ_p norm,
    (E‖z‖_p²)^½, found by `method`; `power_error` is the p-th root of the mean p-th power,
    (E‖z‖_p^p)^{1/p}, exact for normal noise and None for other noise or p = ∞.
    """

    metric: str
    p: float
    error: float
    method: str
    bounds: tuple[LowerBound, ...]
    power_error: float | None = None

    @property
    def ratio(self) -> float | None:
        """error / the largest bound that holds on every dataset or on some."""
        return self._ratio({"every", "some"})

    @property
    def ratio_every(self) -> float | None:
        """error / the largest bound that holds on every dataset."""
        return self._ratio({"every"})

    def _ratio(self, quantifiers: set[str]) -> float | None:
        known = [
            bound.value
            for bound in self.bounds
            if bound.value is not None
            and bound.value > 0
            and bound.datasets in quantifiers
            and not bound.is_conditional
        ]
        return self.error / max(known) if known else None

    @property
    def written_error(self) -> str:
        """The error as it is printed: a bound on it says that it is one."""
        return f"{'at most ' if self.method == 'bound' else ''}{self.error:.4g}"

    def describe(self) -> str:
        """The certificate in sentences."""
        lines = [f"{_capital(self.metric)}: {self.written_error}."]
        lines += [bound.sentence() for bound in self.strongest()]
        lines.append(self.verdict())
        return "\n".join(lines)

    def strongest(self) -> list[LowerBound]:
        """Of the proved bounds on one class of mechanisms and datasets, the largest."""
        best: dict[tuple[str, str], LowerBound] = {}
        for bound in self.bounds:
            known = best.get((bound.mechanisms, bound.datasets))
            if bound.value is None or bound.is_conditional:
                continue
            if known is None or bound.value > (known.value or 0):
                best[bound.mechanisms, bound.datasets] = bound
        return list(best.values())

    def verdict(self) -> str:
        """One sentence: how close to the best possible."""
        if self.ratio is None:
            return "No lower bound with a known constant applies."
        return f"This is {self.closeness()}."

    def closeness(self) -> str:
        """How close to the best possible, in a few words; only where there is a ratio."""
        assert self.ratio is not None
        return f"{times(self.ratio)} the least error that is possible for such mechanisms"

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        rows = [["theorem", "error at least", "of mechanisms", "on datasets", "constant"]]
        for bound in self.bounds:
            least = "no number" if bound.value is None else rounded_down(bound.value)
            rows.append([bound.theorem, least, bound.mechanisms, bound.datasets, bound.source])
        return page(f"{_capital(self.metric)}: {self.written_error}", rows, [self.verdict()], {1})

    def to_dict(self) -> dict[str, Any]:
        """The certificate as JSON."""
        return {
            "metric": self.metric,
            "p": "inf" if math.isinf(self.p) else self.p,
            "error": self.error,
            "method": self.method,
            "power_error": self.power_error,
            "ratio": self.ratio,
            "ratio_every": self.ratio_every,
            "bounds": [bound.to_dict() for bound in self.bounds],
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Certificate:
        """The certificate that `to_dict` described."""
        power = fields["power_error"]
        return cls(
            str(fields["metric"]),
            _check.norm_order(float(fields["p"])),
            _check.real("error", fields["error"]),
            str(fields["method"]),
            tuple(LowerBound.from_dict(bound) for bound in fields["bounds"]),
            None if power is None else _check.real("power_error", power),
        )


def times(ratio: float) -> str:
    """A ratio as people say it: "within 5.2 % of" or "at most 4.4 times"."""
    if ratio < 1.995:
        return f"within {100 * (ratio - 1):.2g} % of"
    return f"at most {ratio:.3g} times"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def metric_name(
    p: float, statistic: str, weights: ArrayLike | None = None, domain: Domain | None = None
) -> str:
    """What an error is, and in which unit if columns are weighted."""
    order = "ℓ∞" if math.isinf(p) else f"ℓ{p:g}".translate(SUBSCRIPTS)
    weighted, unit = unit_of(weights, domain)
    return f"root mean square {weighted}{order} error of the {statistic}{unit}"


def unit_of(weights: ArrayLike | None, domain: Domain | None) -> tuple[str, str]:
    """What is said before and behind "error", if columns are weighted."""
    if weights is None or domain is None or np.all(np.equal(weights, 1)):
        return "", ""
    if np.allclose(np.asarray(weights) * domain.half_widths, 0.5, rtol=1e-12, atol=0.0):
        return "", ", in widths of the bounds"
    return "weighted ", ""
