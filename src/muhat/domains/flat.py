"""What is flat: a domain without any width is the list of its one point.

Where a domain has no width in some coordinates, these are known without any data. Its `factors`
say so: the parts that have a width, and `Points` for what has none, which have no rows, no noise
and no price.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from muhat.domains.vectors import Vector

if TYPE_CHECKING:
    from muhat.domains.base import Domain
    from muhat.domains.points import Points

Factors = list[tuple["Domain", slice]]


def one_point(center: Vector) -> Points:
    """The domain that holds the centre alone."""
    from muhat.domains.points import Points

    return Points(np.atleast_2d(center))


def factors_of(K: Domain, part: Callable[[slice], Domain]) -> Factors:
    """The runs of coordinates with a width and of those without; `part` makes the first."""
    found: Factors = []
    for is_wide, run in groupby(range(K.dim), key=lambda j: bool(K.half_widths[j])):
        places = list(run)
        at = slice(places[0], places[-1] + 1)
        found.append((part(at) if is_wide else one_point(K.center[at]), at))
    return found
