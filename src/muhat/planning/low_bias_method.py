"""What a plan of bounded bias needs of a mechanism, and how mechanisms are compared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from muhat._arrays import Floats
from muhat.domains.reals import Reals
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.moment_error import Moment
from muhat.noise.spread import Spread
from muhat.privacy import Privacy

if TYPE_CHECKING:
    from muhat.data import Source


class LowBiasMethod(Protocol):
    """A way to a mean of small bias, complete before any data is seen."""

    @property
    def name(self) -> str:
        """What users call it."""

    @property
    def label(self) -> str:
        """What tells it from its alternatives."""

    @property
    def summary(self) -> str:
        """What it does, in a few words."""

    @property
    def printed(self) -> tuple[str, str] | None:
        """What it is in Kamath et al. (2024), if kept as printed, and what ours has instead."""

    @property
    def biases(self) -> Floats:
        """Bounds on the bias of every column, under the assumption; of shape (d,)."""

    @property
    def noise(self) -> Spread:
        """The noise on the mean."""

    @property
    def noise_error(self) -> float:
        """The weighted root mean square ℓ₂ error of the noise."""

    @property
    def rmse(self) -> float:
        """The weighted root mean square error against the mean, at most, under the assumption."""

    @property
    def failure(self) -> float:
        """The probability that the steps before the mean fail."""

    @property
    def assumes_symmetry(self) -> bool:
        """Whether the bias is bounded for symmetric distributions only."""

    def keeps(self, promise: Privacy, contributions: int, n: int) -> bool:
        """Whether these are the promise and the number of records it was made for."""

    def admit(self, source: Source) -> None:
        """Refuse a source that the method cannot read, from its metadata alone."""

    def run(self, source: Source) -> Learnt:
        """Read the records; the whole promise has been charged."""

    def to_dict(self) -> dict[str, Any]:
        """All that decides the release."""


class Alternative(NamedTuple):
    """What a mechanism would do: bounds on its bias and error, and the part of the noise in it."""

    mechanism: str
    bias: float
    standard_error: float
    rmse: float

    @classmethod
    def of(cls, method: LowBiasMethod) -> Alternative:
        """What a method does."""
        return cls(method.label, float(method.biases.max()), method.noise_error, method.rmse)

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain data; null where they are infinite."""
        return {
            "mechanism": self.mechanism,
            "bias": finite(self.bias),
            "standard_error": self.standard_error,
            "rmse": finite(self.rmse),
        }


def class_of(domain: Reals, moment: Moment) -> dict[str, Any]:
    """The class of distributions that is assumed of one column, as the bounds take it."""
    scale = float(moment.scales[0])
    # Without a magnitude any interval is in the class; a wider one would not raise the bound.
    interval = 1e6 * scale if domain.magnitude is None else 2 * domain.magnitude
    return {"moment_order": moment.order, "scale": scale, "interval": interval}


def bias_line(
    moment: Moment, bias: float, *, symmetric: bool, records: str = "records", proviso: str = ""
) -> str:
    """What is assumed of the records, and what follows, in a sentence."""
    shape = ", it is symmetric about its mean" if symmetric else ""
    what = f"at most {_rounded_up(bias)}" if math.isfinite(bias) else "unknown with so few records"
    return (
        f"if {moment.describe()}{shape} and the {records} are independent draws, the bias is "
        f"{what}{proviso}; no data can verify that"
    )


def _rounded_up(value: float) -> str:
    """Three significant digits, never below the value by more than a float's rounding."""
    if value <= 0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / step * (1 - 1e-12)) * step:.3g}"


def finite(value: float) -> float | None:
    """The value, or None where it is infinite and nothing is known."""
    return value if math.isfinite(value) else None
