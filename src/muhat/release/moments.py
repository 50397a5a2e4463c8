"""Noisy counts, sums, squares and products of groups: what the answer of a statistic keeps.

Everything is in u = (x − centre)/half-width, within [−1, 1]. A term names what was summed over the
records of a group: () is their number, ("age",) is Σu, ("age", "age") is Σ(1 − u²), and
("age", "pay") is Σu·v, its columns in order. A term may be a noisy table, or a sum of several:
the number of records may be that near the one end of the bounds and that near the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat._plain import Key, Plain
from muhat.errors import InvalidInput
from muhat.noise.laplace_sums import few_tail
from muhat.noise.law import IndependentLaw
from muhat.noise.laws import INDEPENDENT
from muhat.noise.stairs import Stairs
from muhat.release.population import Moments

Term = tuple[str, ...]

COUNT: Term = ()
"""The number of records."""

FARTHEST = 2.0**60
"""No whole noise reaches so far."""


@dataclass(frozen=True, eq=False)
class NoisyTable(Plain, keys=("values", "scale", "law", Key("stairs", optional=True))):
    """Sums of every group with noise, of shape (groups,); `law` is "none" where there is none.

    `scale` is that of the law, the same for all groups: the standard deviation of normal noise,
    the b of Laplace noise, the unit of `stairs`. Laplace noise may be a combination of several
    variables, and b then the length of its coefficients.
    """

    values: Floats
    scale: float
    law: str
    stairs: Stairs | None = None

    def __post_init__(self) -> None:
        if self.values.ndim != 1 or not np.isfinite(self.values).all():
            raise InvalidInput("a noisy table has one finite number a group.")
        if not (math.isfinite(self.scale) and self.scale >= 0):
            raise InvalidInput("the scale of noise is a finite number of at least 0.")
        if (self.law == Stairs.name) != (self.stairs is not None):
            raise InvalidInput("stairs are described where the noise of a table is stairs.")
        if self.law not in ("none", Stairs.name, *INDEPENDENT):
            raise InvalidInput("the noise of a table is normal, laplace, stairs or none.")

    @property
    def error(self) -> float:
        """The standard deviation of the noise."""
        if self.law == "none":
            return 0.0
        return self.scale * math.sqrt(self.shape.variance(1))

    @property
    def shape(self) -> IndependentLaw:
        """The law of the noise in units of the scale; where there is none, any."""
        return self.stairs or INDEPENDENT["normal" if self.law == "none" else self.law]


NoisySum = Mapping[NoisyTable, float]
"""Tables, and how often each is in a sum."""


@dataclass(frozen=True, eq=False)
class NoisyMoments(
    Plain, keys=("terms", "listed", "centers", "half_widths", Key("mixing", optional=True))
):
    """Noisy tables, `listed`, with independent noise of one law, and the terms that they make.

    `mixing`, of shape (terms, tables), says how often each table is in each term; without it every
    term is a table. `centers` and `half_widths` are the units of columns.
    """

    terms: tuple[Term, ...]
    listed: tuple[NoisyTable, ...]
    centers: Mapping[str, float]
    half_widths: Mapping[str, float]
    mixing: Floats | None = None

    def __post_init__(self) -> None:
        if COUNT not in self.terms or len({len(one.values) for one in self.listed}) != 1:
            raise InvalidInput("noisy moments count the records of all of their groups.")
        if self.mixed.shape != (len(self.terms), len(self.listed)):
            raise InvalidInput("the mixing of noisy moments has a row a term, a column a table.")
        if not np.isfinite(self.mixed).all():
            raise InvalidInput("the mixing of noisy moments is made of finite numbers.")
        if len({one.law for one in self.listed} - {"none"}) > 1:
            raise InvalidInput("all noise on the moments of a statistic has one law.")
        if self.law == Stairs.name and (self.terms != (COUNT,) or len(self.listed) != 1):
            raise InvalidInput("stairs are on the numbers of records alone.")
        columns = {column for term in self.terms for column in term}
        if not columns <= self.centers.keys() & self.half_widths.keys():
            raise InvalidInput("every column of noisy moments has a centre and a half-width.")
        if not all(half > 0 and math.isfinite(half) for half in self.half_widths.values()):
            raise InvalidInput("half-widths are finite numbers above 0.")

    @classmethod
    def of(
        cls,
        sums: Mapping[Term, NoisyTable | NoisySum],
        centers: Mapping[str, float],
        half_widths: Mapping[str, float],
    ) -> NoisyMoments:
        """The moments of terms that are tables, or sums of some."""
        parts = [{one: 1.0} if isinstance(one, NoisyTable) else one for one in sums.values()]
        tables = tuple(dict.fromkeys(table for each in parts for table in each))
        mixing = np.array([[each.get(table, 0.0) for table in tables] for each in parts])
        plain = np.array_equal(mixing, np.eye(len(parts)))
        return cls(tuple(sums), tables, centers, half_widths, None if plain else mixing)

    def picked(self, groups: NDArray[np.intp]) -> NoisyMoments:
        """The moments of these groups, in this order."""
        listed = [replace(one, values=one.values[groups]) for one in self.listed]
        return replace(self, listed=tuple(listed))

    @cached_property
    def mixed(self) -> Floats:
        """How often each table is in each term, of shape (terms, tables)."""
        return np.eye(len(self.terms)) if self.mixing is None else self.mixing

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.listed[0].values)

    @property
    def law(self) -> str:
        """That of the noise; "none" if no table has any."""
        laws = {one.law for one in self.listed} - {"none"}
        return laws.pop() if laws else "none"

    @cached_property
    def values(self) -> Floats:
        """All tables, of shape (tables, groups)."""
        return np.array([one.values for one in self.listed])

    @cached_property
    def errors(self) -> Floats:
        """The standard deviation of each table's noise, of shape (tables,)."""
        return np.array([one.error for one in self.listed])

    def row(self, term: Term) -> Floats:
        """How often each table is in a term, of shape (tables,)."""
        return np.asarray(self.mixed[self.terms.index(term)])

    def sum_of(self, term: Term) -> Floats:
        """A noisy term, of shape (groups,)."""
        return np.asarray(self.row(term) @ self.values)

    def error_of(self, term: Term) -> float:
        """The standard deviation of its noise."""
        return float(self.error(self.row(term)))

    @property
    def count(self) -> Floats:
        """The noisy numbers of records, of shape (groups,)."""
        return self.sum_of(COUNT)

    def only(self, group: int) -> NoisyMoments:
        """The moments of one group."""
        place = slice(group, group + 1)
        return replace(
            self, listed=tuple(replace(one, values=one.values[place]) for one in self.listed)
        )

    def error(self, weights: Floats) -> Floats:
        """The deviation of Σ weight·noise, for weights of shape (tables, …)."""
        return np.sqrt(np.tensordot(self.errors**2, weights**2, axes=1))

    def exceeds(
        self, reach: Floats, weights: Floats, miss: float, quantile: float
    ) -> NDArray[np.bool_]:
        """Whether Σ weight·noise reaches so far with a chance below `miss`; elementwise.

        `quantile` is that of a standard normal. For normal noise exactly. Combinations of Laplace
        noise have a tail in closed form; where their variables are combinations themselves, and so
        nearer to normal ones, the quantile of normal noise is not undercut either. Of stairs there
        is one table, of whole numbers, and the chance to reach so far exactly is one.
        """
        (first, *_) = self.listed
        if first.stairs is not None:
            each = np.abs(weights[0]) * first.scale / first.stairs.unit
            sizes = np.minimum(reach / np.maximum(each, 1e-300), FARTHEST)
            # What floats made a little more than a whole number is that number.
            return np.asarray(first.stairs.beyond(np.ceil(sizes * (1 - 2.0**-40))) < miss)
        far: NDArray[np.bool_] = reach > quantile * self.error(weights)
        if self.law != "laplace":
            return far
        scales = self.errors / math.sqrt(2)
        return far & (few_tail(reach, (weights.T * scales).T) < miss)

    def deviations(self, miss: float) -> float:
        """How many standard deviations the noise of one table exceeds with this chance.

        That of a sum of tables is nearer to normal noise and exceeds them no more often.
        """
        law = next((one.shape for one in self.listed if one.law != "none"), self.listed[0].shape)
        return law.quantile(1 - miss, 1) / math.sqrt(law.variance(1))

    def of_column(self, column: str) -> Moments:
        """What is known of one column, a group where a column is meant there."""
        ones, squares = np.ones(self.groups), (column, column)
        known = squares in self.terms
        return Moments(
            self.sum_of((column,)),
            self.error_of((column,)) * ones,
            self.count,
            self.error_of(COUNT) * ones,
            self.sum_of(squares) if known else None,
            self.error_of(squares) * ones if known else None,
        )
