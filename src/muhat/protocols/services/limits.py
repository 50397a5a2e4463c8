"""How often somebody may ask: buckets that fill with time, of all together and of each address.

Addresses are not kept: a bucket belongs to a keyed digest of one, and the key dies with the
process. Of an IPv6 address the first half counts, which is one household's.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import time
from collections.abc import Callable

MOST_ADDRESSES = 1 << 16
"""Whose buckets are remembered; when there are more, those that are full again are forgotten."""


class Bucket:
    """At most `most` at once, and as many again in every `seconds`."""

    def __init__(
        self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._rate, self._clock = float(most), most / seconds, clock
        self._left, self._since = self._most, clock()

    def take(self) -> bool:
        """Whether one more is allowed now."""
        self._fill()
        if self._left < 1:
            return False
        self._left -= 1
        return True

    @property
    def is_full(self) -> bool:
        """Whether nobody has asked for long enough."""
        self._fill()
        return self._left == self._most

    def _fill(self) -> None:
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._since) * self._rate)
        self._since = now


class Rates:
    """Of all together a second, and of each address a minute, if that is not 0."""

    def __init__(
        self,
        per_second: int,
        per_minute_and_address: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._all = Bucket(per_second, 1.0, clock)
        self._each = per_minute_and_address
        self._key = os.urandom(32)
        self._buckets: dict[bytes, Bucket] = {}

    def allow(self, address: str | None) -> bool:
        """Whether a request from here is answered now."""
        return (not self._each or self._of(address).take()) and self._all.take()

    def _of(self, address: str | None) -> Bucket:
        name = hashlib.blake2b(_household(address), key=self._key, digest_size=16).digest()
        if name not in self._buckets:
            if len(self._buckets) >= MOST_ADDRESSES:
                busy = {key: each for key, each in self._buckets.items() if not each.is_full}
                # With this many busy addresses at once, what is left of each is forgotten.
                self._buckets = busy if len(busy) < MOST_ADDRESSES else {}
            self._buckets[name] = Bucket(self._each, 60.0, self._clock)
        return self._buckets[name]


def _household(address: str | None) -> bytes:
    try:
        found = ipaddress.ip_address(address or "")
    except ValueError:
        return b""
    return found.packed[:8] if found.version == 6 else found.packed
