"""Which asking of a question a description is: its name, its version, and until when it is open.

The same question asked again is another survey, or another version of one; a device pays for each
of them. Without a survey a description is known by what it asks alone, and is never asked again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from muhat import _check
from muhat._plain import Key, Plain
from muhat.errors import InvalidInput

LONGEST_NAME = 200
MOST_VERSIONS = 1 << 31


@dataclass(frozen=True)
class Survey(Plain, keys=("name", "version", Key("expires", optional=True))):
    """A name, a version that only grows, and the moment from which nobody answers any more.

    >>> Survey("commuting", 2, "2027-01-01")
    Survey(name='commuting', version=2, expires='2027-01-01T00:00:00Z')
    """

    name: str
    version: int = 1
    expires: str | None = None
    """ISO 8601; a moment without a zone is in UTC, and a date is its beginning."""

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and 0 < len(self.name) <= LONGEST_NAME):
            raise InvalidInput(
                f"must be a text of at most {LONGEST_NAME} characters", parameter="name"
            )
        version = _check.count("version", self.version, most=MOST_VERSIONS)
        object.__setattr__(self, "version", version)
        if self.expires is not None:
            object.__setattr__(self, "expires", moment_text(moment(self.expires)))

    @property
    def ends(self) -> int | None:
        """`expires` in seconds since 1970."""
        return None if self.expires is None else moment(self.expires)

    def require_open(self, now: float) -> None:
        """Refuse to answer what has ended."""
        if self.ends is not None and now >= self.ends:
            raise InvalidInput(f"the survey ended at {self.expires}: it is not answered any more.")

    def __str__(self) -> str:
        until = "" if self.expires is None else f", until {self.expires}"
        return f"{self.name!r}, version {self.version}{until}"


def moment(text: object) -> int:
    """Seconds since 1970 of an ISO 8601 text."""
    try:
        found = datetime.fromisoformat(str(text))
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise InvalidInput(
            "must be a date or a moment, such as 2027-01-01T00:00:00Z", parameter="expires"
        ) from None


def moment_text(seconds: int) -> str:
    """The moment in UTC, written in one way only."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
