"""The fields that all releases share, to JSON and back."""

from __future__ import annotations

from typing import Any, Protocol

from muhat import _check, privacy
from muhat._arrays import Floats
from muhat.privacy import Neighbors, Privacy
from muhat.release.certificate import Certificate

CONFIDENCE = 0.95
"""That of the intervals that are written and shown."""


class Accounted(Protocol):
    """A release, as far as its promise is concerned."""

    @property
    def mechanism(self) -> str:
        """What made it."""

    @property
    def privacy(self) -> Privacy:
        """The promise."""

    @property
    def neighbors(self) -> Neighbors:
        """Between which datasets it holds."""

    @property
    def n(self) -> int | None:
        """The number of records, None if it is secret."""

    @property
    def contributions(self) -> int:
        """The most records of a person."""

    @property
    def cost(self) -> Privacy:
        """What was charged."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What promise and errors rest on."""

    @property
    def plan_digest(self) -> str:
        """SHA-256 of everything that decided the release."""

    @property
    def ledger_head(self) -> dict[str, Any] | None:
        """The account's head after the charge."""


def account_fields(release: Accounted, certificate: Certificate | None = None) -> dict[str, Any]:
    """Mechanism, promise, cost, certificate and assumptions of a release."""
    return {
        "mechanism": release.mechanism,
        "privacy": privacy.to_dict(release.privacy),
        "neighbors": release.neighbors.value,
        "n": release.n,
        "contributions": release.contributions,
        "cost": privacy.to_dict(release.cost),
        "certificate": None if certificate is None else certificate.to_dict(),
        "assumptions": list(release.assumptions),
        "cautions": list(privacy.cautions(release.privacy, release.n)),
        "plan_digest": release.plan_digest,
        "ledger_head": release.ledger_head,
    }


def read_account(fields: dict[str, Any]) -> dict[str, Any]:
    """What `account_fields` wrote, as the arguments that every release takes."""
    n = fields["n"]
    return {
        "privacy": privacy.from_dict(fields["privacy"]),
        "neighbors": Neighbors.parse(fields["neighbors"]),
        "n": None if n is None else _check.count("n", n, least=0),
        "contributions": _check.count("contributions", fields["contributions"]),
        "assumptions": tuple(map(str, fields["assumptions"])),
        "plan_digest": str(fields["plan_digest"]),
        "ledger_head": fields["ledger_head"],
    }


def read_certificate(fields: dict[str, Any]) -> Certificate | None:
    """The certificate of a release that has one."""
    certificate = fields["certificate"]
    return None if certificate is None else Certificate.from_dict(certificate)


def interval_fields(interval: tuple[Floats, Floats], target: str = "records") -> dict[str, Any]:
    """The interval around the exact answer for the clipped records, or for their population."""
    lower, upper = interval
    return {
        "confidence": CONFIDENCE,
        "target": target,
        "lower": lower.tolist(),
        "upper": upper.tolist(),
    }
