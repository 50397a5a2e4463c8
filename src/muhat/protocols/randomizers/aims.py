"""What an estimate is about and which of its errors is made small, as descriptions write it."""

from __future__ import annotations

import math
from typing import Any, Protocol

from muhat import domains
from muhat.domains import Domain


class Aims(Protocol):
    """A domain, and the error ‖diag(weights)·error‖_p."""

    @property
    def domain(self) -> Domain:
        """Where records lie."""

    @property
    def p(self) -> float:
        """The order of the norm, infinity included."""

    @property
    def weights(self) -> tuple[float, ...] | None:
        """None if all are the same."""


def aims_of(made: Aims) -> dict[str, Any]:
    """Domain, p and weights as plain data."""
    return {
        "domain": made.domain.to_dict(),
        "p": "inf" if math.isinf(made.p) else made.p,
        "weights": None if made.weights is None else list(made.weights),
    }


def read_aims(fields: dict[str, Any]) -> dict[str, Any]:
    """Domain, p and weights by name, as `aims_of` wrote them."""
    return {
        "domain": domains.from_dict(fields["domain"]),
        "p": float(fields["p"]),
        "weights": read_numbers(fields["weights"]),
    }


def read_numbers(values: Any) -> tuple[float, ...] | None:
    """A list of numbers, or None."""
    return None if values is None else tuple(map(float, values))
