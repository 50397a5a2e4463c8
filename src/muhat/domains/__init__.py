"""Where a record may lie. Each domain knows its support function and how to clip to it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from muhat.domains.ball import Ball
from muhat.domains.base import Domain
from muhat.domains.box import Box
from muhat.domains.ellipsoid import Ellipsoid

__all__ = ["Ball", "Box", "Domain", "Ellipsoid", "from_dict"]


def from_dict(fields: dict[str, Any]) -> Domain:
    """The domain that its `to_dict` described."""
    center = [float.fromhex(value) for value in fields.get("center", [])]
    if fields["domain"] == "ball":
        return Ball(float.fromhex(fields["radius"]), len(center), center)
    if fields["domain"] == "ellipsoid":
        rows = [[float.fromhex(value) for value in row] for row in fields["matrix"]]
        return Ellipsoid(rows, center)
    lower, upper = zip(*fields["bounds"], strict=True)
    return Box([Fraction(low) for low in lower], [Fraction(high) for high in upper])
