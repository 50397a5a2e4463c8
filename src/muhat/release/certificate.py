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

NEAR, ALIKE = 1.05, 0.99
"""A bound on any mechanism, biased or not, is the one to read where the error is this near, or
no other bound says more than that."""

_WHOM = {"any": "any mechanism", "unbiased": "unbiased mechanisms", "additive": "additive noise"}
_ORDER = {"unbiased": 0, "additive": 1, "any": 2}
_IMPLIED = {"every": {"every", "near", "some"}, "near": {"near", "some"}, "some": {"some"}}


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
        """error / the largest bound, of whichever class and on every dataset or on some.

        Where the error is itself a bound (`method`), so is this: the truth may be closer to 1.
        """
        return self._ratio(self._proved())

    @property
    def ratio_every(self) -> float | None:
        """error / the largest bound that holds on every dataset."""
        return self._ratio([bound for bound in self._proved() if bound.datasets == "every"])

    @property
    def ratio_any(self) -> float | None:
        """error / the largest bound that holds for any mechanism, biased or not, on some dataset.

        How far every other mechanism could be ahead on all datasets, at most.
        """
        return self.ratio_to("any", "some")

    def ratio_to(self, mechanisms: str, datasets: str) -> float | None:
        """error / the largest bound on one class of mechanisms, on "every", "near" or "some"."""
        of = mechanisms, datasets
        return self._ratio([b for b in self._proved() if (b.mechanisms, b.datasets) == of])

    def _ratio(self, bounds: list[LowerBound]) -> float | None:
        return self.error / max(map(_value, bounds)) if bounds else None

    def _proved(self) -> list[LowerBound]:
        """The bounds that say something without a condition, about datasets."""
        return [
            bound
            for bound in self.bounds
            if _value(bound) > 0 and bound.datasets in _IMPLIED and not bound.is_conditional
        ]

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
        """The proved bounds that say more than the others together; that of any mechanism first.

        Of two bounds on one class of mechanisms and datasets the larger, and none that follows
        from a larger one. Where it is far below the error, that of any mechanism is the last.
        """
        kept: list[LowerBound] = []
        for bound in sorted(self._proved(), key=lambda b: (-_value(b), b.mechanisms != "any")):
            if not any(_implies(larger, bound) for larger in kept):
                kept.append(bound)
        first = self._first()
        return sorted(kept, key=lambda bound: (bound is not first, _ORDER[bound.mechanisms]))

    def _first(self) -> LowerBound | None:
        """The bound that people read: of any mechanism if that is near, else the largest."""
        proved = self._proved()
        largest = max(map(_value, proved), default=0.0)
        needed = min(self.error / NEAR, ALIKE * largest)
        near = [b for b in proved if b.mechanisms == "any" and _value(b) >= needed]
        return max(near or proved, key=_value, default=None)

    def verdict(self) -> str:
        """One sentence: how close to the best possible, and among whom."""
        if self._first() is None:
            return "No lower bound with a known constant applies."
        return f"This is {self.closeness()}"

    def closeness(self) -> str:
        """How close to the best possible, after "This is"; only where there is a ratio."""
        bound = self._first()
        assert bound is not None
        ratio = times(self.error / _value(bound))
        where = " on all datasets" if bound.datasets != "every" else ""
        over = " Both numbers are bounds; it may be closer." if self.method == "bound" else ""
        whom = _WHOM[bound.mechanisms]
        return f"{ratio} the least error that is possible for {whom}{where}.{over}"

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
            "ratio_any": self.ratio_any,
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
        return f"within {max(100 * (ratio - 1), 0.01):.2g} % of"
    return f"at most {ratio:.3g} times"


def _value(bound: LowerBound) -> float:
    return bound.value or 0.0


def _implies(larger: LowerBound, bound: LowerBound) -> bool:
    """Whether a bound follows from one that is at least as large.

    Additive noise errs alike on all datasets, and no less than without its bias: what is said of
    any or of unbiased mechanisms on some dataset is said of it on every one.
    """
    if bound.is_of_noise:
        return True
    same = larger.mechanisms in {"any", bound.mechanisms}
    return same and bound.datasets in _IMPLIED[larger.datasets]


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
