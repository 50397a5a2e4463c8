"""What records have beyond an inner radius, for means that are shrunk where it is noise.

For y = weights∘(x − center) a record has y·max(0, 1 − inner/‖y‖), clipped to a ball about 0: with
y clipped to the inner radius it adds up to y clipped to the outer one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from muhat import _check
from muhat._arrays import Floats, Integers
from muhat.domains import Ball
from muhat.errors import InvalidInput
from muhat.noise.entropy import Words, system_words
from muhat.protocols.encodings.cut_encoding import Radius
from muhat.protocols.encodings.domain_encoding import DomainEncoding

ORIGIN = Radius((0.0,))


@dataclass(frozen=True)
class ShellEncoding(DomainEncoding, keys=("domain", "bits", "look", "inner")):
    """Points of a ball about 0, `domain`: what lies beyond `inner` around `look.center`.

    Means are those of the weighted coordinates. The ball's integers are proved to move no further
    than they may, whatever floats the record became before.
    """

    look: Radius = ORIGIN
    inner: float = 0.0

    kind: ClassVar[str] = "shell"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "inner", _check.positive("inner", self.inner))
        ball = self.domain
        if not isinstance(ball, Ball) or ball.center.any() or ball.dim != self.look.record_dim:
            raise InvalidInput("a shell is encoded as a ball about 0 of the records' dimensions.")

    @classmethod
    def between(cls, look: Radius, inner: float, outer: float) -> Self:
        """What lies between two radii."""
        return cls(Ball(outer - inner, look.record_dim), look=look, inner=inner)

    def integers(self, records: Floats, words: Words = system_words) -> Integers:
        """The numbers of what lies beyond, of shape (people, numbers): see `Encoding`."""
        moved = self.look.moved(records)
        length = np.sqrt(np.square(moved).sum(axis=1))
        # 0/0 stands for records in the centre, of which nothing lies beyond.
        with np.errstate(all="ignore"):
            part = np.where(length > self.inner, 1 - self.inner / length, 0.0)
        return super().integers(moved * part[:, None], words)
