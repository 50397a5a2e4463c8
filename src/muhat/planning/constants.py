"""Boxes of which some columns are constants, which are known without any data.

The other columns are planned and released as if they were all there is; the constants stand beside
them, exactly. The ellipsoid around a flat box is that of its other columns, so that noise, errors
and bounds are those of these. A sum of a constant is one only if the number of its values is
public.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.domains import Box
from muhat.domains.flat import one_point
from muhat.mechanisms.sums.ratio import Ratio
from muhat.noise.spread import Spread
from muhat.planning.mechanism import Columns, Mechanism, Rows
from muhat.planning.run import note_of
from muhat.planning.sums import NoisySums
from muhat.planning.terms import Terms
from muhat.release.beside import Recorded, Squares
from muhat.release.certificate import Certificate
from muhat.release.vector_answer import VectorAnswer
from muhat.statistics.bounded import Bounded, chosen_columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.data import Source
    from muhat.data.chosen_columns import ChosenColumns

Mask = NDArray[np.bool_]

TINY = 2.0**-40
"""The noise on what stands for the number of values of a constant: as good as none."""


LISTED = 6
"""How many constants are named."""


def constants_of(asked: Bounded, terms: Terms) -> Mask:
    """Which columns have one answer, whatever the data are; of shape (d,)."""
    flat: Mask = asked.domain.half_widths == 0
    if not asked.by_column or (asked.unbiased and terms.is_secret):
        return np.zeros(len(flat), bool)
    number_is_public = not terms.is_secret and asked.missing != "drop"
    if asked.statistic == "sum" and not number_is_public:
        flat &= asked.domain.center == 0
    return flat


def parted(asked: Bounded, terms: Terms) -> Bounded:
    """A sum of a secret number of complete records, constants among them: a product of parts.

    How often a constant is in it is secret, and the sum has noise for that.
    """
    complete = asked.by_column and asked.missing != "drop"
    flat = complete and not asked.domain.half_widths.all()
    if not flat or asked.statistic != "sum" or not terms.is_secret:
        return asked
    parts = [part for part, _ in asked.domain.factors()]
    return replace(asked, domain=reduce(operator.mul, parts))


def with_constants(
    asked: Bounded, terms: Terms, constant: Mask, plan: Callable[[Bounded, Terms], Mechanism]
) -> Mechanism:
    """The mechanism of the other columns, with the constants beside them."""
    domain = asked.domain
    assert isinstance(domain, Box)
    names = asked.columns or tuple(str(index) for index in range(domain.dim))
    if constant.all():
        point = one_point(domain.center)
        return plan(replace(asked, domain=point, missing="none", population=False), terms)
    others = replace(
        asked,
        domain=domain.only(~constant),
        weights=asked.weights[~constant],
        columns=tuple(name for name, fixed in zip(names, constant, strict=True) if not fixed),
    )
    inner = plan(others, terms)
    assert isinstance(inner, NoisySums)
    known = [f"{name} = {domain.center[j]:g}" for j, name in enumerate(names) if constant[j]]
    more = [f"and {len(known) - LISTED} more"] if len(known) > LISTED else []
    said = f"constants need no data and no noise: {', '.join([*known[:LISTED], *more])}"
    return WithConstants(
        terms=inner.terms,
        statistic=asked.statistic,
        columns=asked.columns,
        domain=domain,
        weights=asked.weights,
        constant=constant,
        inner=inner.assuming(said),
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WithConstants(Mechanism):
    """A mean or a sum in a box: `inner` is for the columns that are not `constant`."""

    domain: Box
    weights: Floats
    constant: Mask
    inner: NoisySums

    def keeps(self, terms: Terms) -> bool:
        """Whether the noise on the other columns was proved for them."""
        return self.inner.keeps(terms)

    @property
    def name(self) -> str:
        """That of the other columns."""
        return self.inner.name

    @property
    def dim(self) -> int:
        """The number of values released."""
        return self.domain.dim

    @property
    def p(self) -> float:
        """Errors are measured in ℓ_p."""
        return self.inner.p

    @property
    def missing(self) -> str:
        """What becomes of missing values; one in a constant column is that constant."""
        return self.inner.missing

    @property
    def recipe(self) -> Any:
        """That of the other columns."""
        return self.inner.recipe

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of the other columns, and which columns are constants."""
        return self.inner.assumptions

    @property
    def spread(self) -> Spread | None:
        """The noise of the other columns, and none on the constants."""
        spread = self.inner.spread
        return None if spread is None else self._spread(spread)

    @property
    def expected_error(self) -> float | None:
        """That of the other columns."""
        return self.inner.expected_error

    @property
    def expected_error_method(self) -> str | None:
        """How it was found."""
        return self.inner.expected_error_method

    @property
    def projected_error(self) -> float | None:
        """That of the other columns."""
        return self.inner.projected_error

    @property
    def certificate(self) -> Certificate | None:
        """That of the other columns: Γ_p of a flat box is theirs."""
        return self.inner.certificate

    @property
    def alternatives(self) -> tuple[tuple[str, float], ...]:
        """Those of the other columns."""
        return self.inner.alternatives

    @property
    def unknowns(self) -> tuple[str, ...]:
        """Those of the other columns."""
        return self.inner.unknowns

    def error_if(self, n: int) -> float:
        """That of the other columns."""
        return self.inner.error_if(n)

    def standard_error_at(self, n: int, offsets: Floats) -> Floats:
        """Of a ratio, for n values a column; of shape (d,)."""
        return self._beside(self.inner.standard_error_at(n, offsets[~self.constant]), 0.0)

    def errors(self) -> list[tuple[Any, Any]]:
        """Those of the other columns."""
        return self.inner.errors()

    def decisive(self) -> dict[str, Any]:
        """The whole box, and what decides about the other columns."""
        return {"domain": self.domain.to_dict(), "others": self.inner.decisive()}

    def details(self) -> dict[str, Any]:
        """Those of the other columns, in the whole box."""
        return {
            **self.inner.details(),
            "weights": self.weights.tolist(),
            "domain": self.domain.to_dict(),
        }

    def facts(self) -> Rows:
        """The whole box, and the noise on the other columns."""
        return [["domain", repr(self.domain)], *self.inner.facts()[1:]]

    def tables(self) -> list[Rows]:
        """Errors of the other columns."""
        return self.inner.tables()

    def notes(self) -> list[str]:
        """Those of the other columns."""
        return self.inner.notes()

    def figure(self, *chosen: Any) -> Figure:
        """That of the other columns."""
        return self.inner.figure(*chosen)

    def assuming(self, *sentences: str) -> Self:
        """The same mechanism with more assumptions stated."""
        return replace(self, inner=self.inner.assuming(*sentences))

    def open(self, data: Any, columns: Columns) -> ChosenColumns:
        """The other columns of the data; all of them are looked for."""
        from muhat.data import open_source
        from muhat.data.chosen_columns import ChosenColumns

        whole = open_source(data, chosen_columns(self.columns, columns), self.dim)
        return ChosenColumns(whole, np.flatnonzero(~self.constant).tolist())

    def counted(self, source: Source) -> WithConstants:
        """The same for these records."""
        inner = self.inner.counted(source)
        return replace(self, inner=inner, terms=inner.terms)

    def admit(self, source: Source) -> None:
        """Refuse errors without bound."""
        self.inner.admit(source)

    def note(self, source: ChosenColumns) -> str:
        """The statistic and the columns."""
        return note_of(self.statistic, source.whole.columns)

    def read(self, source: ChosenColumns) -> VectorAnswer:
        """One pass over the other columns."""
        found = self.inner.read(source)
        times = 1 if self.statistic == "mean" else self.n or 0
        return replace(
            found,
            value=self._beside(found.value, self.domain.center * times),
            columns=source.whole.columns,
            domain=self.domain,
            noise=self._noise(found.noise),
            recorded=self._recorded(found.recorded),
            squares=None if found.squares is None else self._squares(found.squares),
        )

    def _beside(self, values: Floats, constants: Floats | float) -> Floats:
        """Values of the other columns, with those of the constants in their places."""
        whole = np.array(np.broadcast_to(constants, (self.dim,)), np.float64)
        whole[~self.constant] = values
        return whole

    def _spread(self, spread: Spread) -> Spread:
        factor = spread.factor
        if factor is not None:
            rows, factor = factor, np.zeros((self.dim, factor.shape[1]))
            factor[~self.constant] = rows
        return replace(spread, scales=self._beside(spread.scales, 0.0), factor=factor)

    def _noise(self, noise: Any) -> Spread | Ratio:
        if isinstance(noise, Spread):
            return self._spread(noise)
        assert isinstance(noise, Ratio)
        found = replace(
            noise,
            sums=self._beside(noise.sums, 0.0),
            sum_spread=self._spread(noise.sum_spread),
            lower=self._beside(noise.lower, 0.0),
            upper=self._beside(noise.upper, 0.0),
            shift=self._beside(noise.shift, 0.0),
        )
        if not self.inner.counts_columns:
            return found
        # Constants are told apart from nothing, and not counted.
        counted = noise.count_spread
        return replace(
            found,
            count=self._beside(noise.count, 1.0),
            count_scale=self._beside(noise.count_scale, TINY),
            count_spread=None if counted is None else self._spread(counted),
        )

    def _recorded(self, recorded: Recorded | None) -> Recorded | None:
        """A constant has as many values as there are records, if their number is public."""
        if recorded is None or not self.inner.counts_columns:
            return recorded
        if self.n is None:
            return None
        return Recorded(
            self._beside(recorded.value, self.n), self._beside(recorded.standard_error, 0.0)
        )

    def _squares(self, squares: Squares) -> Squares:
        return replace(
            squares,
            lacking=self._beside(squares.lacking, 0.0),
            spread=self._spread(squares.spread),
            center=self._beside(squares.center, self.domain.center),
            half_widths=self._beside(squares.half_widths, 0.0),
        )
