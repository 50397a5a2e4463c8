"""What is asked of data, until they are opened: then it becomes a plan, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muhat.planning.candidates import mechanism_for
from muhat.planning.mechanism import Columns
from muhat.planning.plan import Plan
from muhat.planning.run import counted_terms
from muhat.planning.terms import Terms
from muhat.statistics.bounded import Bounded
from muhat.statistics.reals import LowBias, Unassuming, open_records

if TYPE_CHECKING:
    from muhat.data import Source


@dataclass(frozen=True, eq=False)
class Request:
    """A mean or a sum under given terms.

    What a schema says of missing values enters when the data are opened, and so does a number of
    records that is counted; until then `plan` is the one for what is known, or None if that is too
    little.
    """

    asked: Bounded | Unassuming | LowBias
    terms: Terms
    plan: Plan | None

    @classmethod
    def of(cls, asked: Bounded | Unassuming | LowBias, terms: Terms) -> Request:
        """Plan now whatever can be, so that what cannot is refused before anything is opened."""
        waits = asked.needs_n and terms.n is None and not terms.is_secret
        return cls(asked, terms, None if waits else Plan.of(mechanism_for(asked, terms)))

    def open(self, data: Any, columns: Columns) -> list[Source]:
        """The data as records; arguments and metadata are checked alone."""
        if self.plan is not None:
            return self.plan.open(data, columns)
        assert not isinstance(self.asked, Bounded)  # whose plan does not wait for n
        return [open_records(self.asked.domain, data, columns)]

    def planned(self, sources: list[Source]) -> Plan:
        """The plan for these records."""
        (source,) = sources
        asked = self.asked.completed() if source.complete else self.asked
        if asked is self.asked and self.plan is not None:
            return self.plan.planned(sources)
        terms = counted_terms(self.terms, source) if asked.needs_n else self.terms
        return Plan.of(mechanism_for(asked, terms)).planned(sources)
