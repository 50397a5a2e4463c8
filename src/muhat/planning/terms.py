"""Under which terms something is released: what is promised, to whom, about how many records.

And which kinds of noise are worth planning with. Normal noise keeps all promises but pure ones, for
some μ, and pure noise keeps every promise, for some ε. For the same promise the noise of an
ellipsoid's norm is √(d + 1)·μ/ε times as large as normal noise. Under (ε, δ)-privacy ε/μ is 4 or
so: in a few dimensions pure noise is the smaller one. Under zCDP and Gaussian privacy ε/μ is hardly
more than 1 unless the promise is worth nothing.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from muhat import _check, privacy
from muhat._words import Parameter
from muhat.errors import InvalidInput
from muhat.ledger import Ledger
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors, Privacy, check_promise
from muhat.privacy.worth import warn_of_large_delta

if TYPE_CHECKING:
    from muhat.data.units import People


class Counted(enum.Enum):
    """n was left out: the rows are counted and their number is declared public."""

    COUNTED = "counted"


COUNTED = Counted.COUNTED


def number_for(
    n: int | Counted | None, neighbors: Neighbors | str | None, account: Ledger | None
) -> int | Counted | None:
    """n as given; left out it is secret if the relation is, that of the ledger unless given."""
    if n is not COUNTED:
        return n
    if neighbors is None and account is not None:
        neighbors = account.neighbors
    secret = neighbors is not None and Neighbors.parse(neighbors) is Neighbors.ADD_REMOVE
    return None if secret else COUNTED


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The promise, the relation it is about, n, and how many records a person has at most.

    Where records are replaced n is public: None until the rows are counted. Where they are added or
    removed it is secret, and always None; `n_min` may say how many there are at the least. With a
    `unit`, the column that says whose record it is, no more than `contributions` records of a
    person enter; without one, that nobody has more is assumed.
    """

    privacy: Privacy
    neighbors: Neighbors
    n: int | None = None
    contributions: int = 1
    n_min: int | None = None
    was_counted: bool = False
    unit: str | None = None

    @classmethod
    def checked(
        cls,
        privacy: Privacy | None,
        n: int | Counted | None,
        *,
        neighbors: Neighbors | str | None = None,
        contributions: int = 1,
        n_min: int | None = None,
        unit: str | None = None,
    ) -> Terms:
        """The terms of a public n, of one to be counted, or of a secret one, None."""
        check_promise(privacy)
        assert privacy is not None
        number = None if n is None or isinstance(n, Counted) else _check.count("n", n)
        if n_min is not None and n is not None:
            raise InvalidInput(Parameter("n_min"), " is for a secret n; leave it out.")
        if unit is not None and number is not None:
            raise InvalidInput(
                "n is no public number where a person may have any number of rows; leave ",
                Parameter("n"),
                " out.",
            )
        warn_of_large_delta(privacy, number)
        return cls(
            privacy=privacy,
            neighbors=_relation(n, neighbors),
            n=number,
            contributions=_check.count("contributions", contributions),
            n_min=None if n_min is None else _check.count("n_min", n_min),
            unit=unit,
        )

    @property
    def is_secret(self) -> bool:
        """Whether the number of records is."""
        return self.neighbors is Neighbors.ADD_REMOVE

    @property
    def hides_n(self) -> bool:
        """Whether nobody is told how many records there are.

        Where a person may have any number of rows, whoever replaces one changes it.
        """
        return self.is_secret or self.unit is not None

    @property
    def cautions(self) -> tuple[str, ...]:
        """Whatever makes the promise worth little."""
        return privacy.cautions(self.privacy, self.n)

    @property
    def protection(self) -> Protection:
        """What they ask of noise."""
        return Protection(self.privacy, self.neighbors, self.contributions)

    def people(self) -> People | None:
        """Whose rows belong together, and how many of them enter; None if each is alone."""
        from muhat.data.units import People

        return None if self.unit is None else People(self.unit, self.contributions)

    def part(self, share: Fraction) -> Terms:
        """The terms of a share of the promise."""
        return self if share == 1 else replace(self, privacy=self.privacy.part(share))

    def counted(self, n: int) -> Terms:
        """The terms of as many records as were counted, which are public."""
        warn_of_large_delta(self.privacy, n)
        return replace(self, n=n, was_counted=True)

    def number(self) -> tuple[str, ...]:
        """What is known of n, in sentences."""
        if self.hides_n:
            return ("n is secret",)
        known = "the number of records" if self.n is None else f"n = {self.n}"
        return (f"{known} is public", *["n was counted from the data"] * self.was_counted)

    def person(self) -> str:
        """How many records a person has, in a sentence."""
        if self.unit is not None:
            rows = "row" if self.contributions == 1 else "rows"
            return (
                f"at most {self.contributions} {rows} of each {self.unit} enter, chosen by a "
                "secret key that nobody else's rows have a part in"
            )
        records = "one record" if self.contributions == 1 else f"{self.contributions} records"
        return f"a person contributes at most {records}"

    def relation(self, unit: str = "record") -> str:
        """What one person can do to the data, in words."""
        records = f"one {unit}" if self.contributions == 1 else f"{self.contributions} {unit}s"
        if self.unit is not None:
            records = f"all rows of one {self.unit}"
        return f"{records} {'added or removed' if self.is_secret else 'replaced'}"

    def to_dict(self) -> dict[str, Any]:
        """The terms as plain data."""
        return {
            "privacy": privacy.to_dict(self.privacy),
            "neighbors": self.neighbors.value,
            "n": self.n,
            "contributions": self.contributions,
            **({} if self.unit is None else {"unit": self.unit}),
        }


class UnderTerms:
    """Whatever is made for terms says them as its own."""

    terms: Terms

    @property
    def privacy(self) -> Privacy:
        """What is promised."""
        return self.terms.privacy

    @property
    def neighbors(self) -> Neighbors:
        """The relation that it is promised for."""
        return self.terms.neighbors

    @property
    def n(self) -> int | None:
        """The public number of records; None if it is secret, or not counted yet."""
        return self.terms.n

    @property
    def contributions(self) -> int:
        """The most records of a person."""
        return self.terms.contributions


def _relation(n: int | Counted | None, neighbors: Neighbors | str | None) -> Neighbors:
    """The relation that a public or a secret n implies; another one is refused."""
    implied = Neighbors.ADD_REMOVE if n is None else Neighbors.SUBSTITUTE
    if neighbors is not None and Neighbors.parse(neighbors) is not implied:
        fact = "n is secret" if n is None else "n is public"
        raise InvalidInput(
            f"{fact}, so neighbors must be {implied.value!r}; got "
            f"{Neighbors.parse(neighbors).value!r}."
        )
    return implied


LEAST_GAIN = 1.3
"""Pure noise does not win for a smaller ε/μ: √2 in one dimension, 1.35 for ℓ_∞ in two."""

WIDEST = 16
"""Nor in more than so many times (ε/μ)² dimensions: 1 for ellipsoids, 3 for boxes, most for ℓ_∞."""


def kinds_of_noise(promise: Privacy, dim: int) -> tuple[NoiseKind, ...]:
    """The kinds that compete for d noisy numbers.

    >>> from muhat.privacy import ZCDP, ApproxDP, PureDP
    >>> kinds_of_noise(PureDP(epsilon=1.0), 8), kinds_of_noise(ZCDP(rho=0.5), 8)
    ((<NoiseKind.PURE: 'pure'>,), (<NoiseKind.NORMAL: 'normal'>,))
    >>> len(kinds_of_noise(ApproxDP(epsilon=1.0, delta=1e-6), 8))
    2
    """
    if not promise.admits_normal:
        return (NoiseKind.PURE,)
    if not promise.admits_pure:
        return (NoiseKind.NORMAL,)
    normal, pure = (Strength.of(promise, kind).squared for kind in NoiseKind)
    competes = pure / normal >= LEAST_GAIN**2 and dim <= WIDEST * (pure / normal)
    # Stairs on one number may be cut at δ.
    competes |= dim == 1 and promise.point is not None
    return tuple(NoiseKind) if competes else (NoiseKind.NORMAL,)
