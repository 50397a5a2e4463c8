"""Linear queries on a histogram, as matrices that know their structure.

    W = mh.workloads.prefix(256); W.shape; W @ x; W.gram(); W.row_norms(); W.dense()

A workload multiplies vectors without being built, adds (`V + W`), and takes numbers (`2 * W`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muhat.errors import InvalidInput
from muhat.workloads.base import Scaled, SumOfWorkloads, Workload
from muhat.workloads.cells import sizes
from muhat.workloads.explicit import Explicit, Sparse, explicit
from muhat.workloads.identity import Identity
from muhat.workloads.kron import Kron
from muhat.workloads.linear_map import LinearMap
from muhat.workloads.marginals import LARGEST_CELLS as _LARGEST_TABLE
from muhat.workloads.marginals import Marginals, sets_of_order
from muhat.workloads.parity import Parity
from muhat.workloads.prefix import Prefix
from muhat.workloads.ranges import Ranges
from muhat.workloads.stack import Stack

__all__ = [
    "Explicit",
    "Identity",
    "Kron",
    "LinearMap",
    "Marginals",
    "Parity",
    "Prefix",
    "Ranges",
    "Scaled",
    "Sparse",
    "Stack",
    "SumOfWorkloads",
    "Workload",
    "from_dict",
    "identity",
    "kron",
    "marginals",
    "matrix",
    "parity",
    "prefix",
    "ranges",
    "stack",
]


def identity(n: int | tuple[int, ...]) -> Identity:
    """Every cell of a histogram of n cells, or of a shape."""
    return Identity(n)


def prefix(n: int) -> Prefix:
    """The n running totals x₀ + … + x_i."""
    return Prefix(n)


def ranges(n: int) -> Ranges:
    """All n(n+1)/2 sums x_s + … + x_e, ordered by s and then by e."""
    return Ranges(n)


def parity(dim: int, width: int) -> Parity:
    """The parities of all sets of exactly `width` of `dim` bits; 2^dim cells."""
    return Parity(dim, width)


def marginals(
    shape: Sequence[int],
    order: int | Sequence[int] | None = None,
    sets: Sequence[Sequence[int]] | None = None,
) -> Marginals:
    """All cells of the marginal tables of a histogram of this shape.

    Args:
        shape: the number of categories of each attribute.
        order: all sets of exactly this many attributes, in lexicographic order; or several
            orders, smaller ones first.
        sets: instead of `order`, the sets of axes themselves, as [(0,), (0, 2)]; () is the total.

    >>> marginals((2, 3, 5), order=2).sets
    ((0, 1), (0, 2), (1, 2))
    """
    if (order is None) == (sets is None):
        raise InvalidInput("give either order or sets: order=2, or sets=[(0,), (0, 2)].")
    shape = sizes("shape", shape, most=_LARGEST_TABLE)
    return Marginals(shape, sets_of_order(len(shape), order) if sets is None else sets)


def matrix(A: Any, cells: tuple[int, ...] | None = None) -> Explicit | Sparse:
    """The rows of a matrix of shape (m, N), dense or scipy sparse.

    `cells` is the shape of the histogram, in C order, if it has more than one axis.
    """
    return explicit(A, cells)


def kron(*factors: Workload) -> Workload:
    """W₁ ⊗ W₂ ⊗ …: all products of a query of each; the axes of the histograms in a row."""
    return factors[0] if len(factors) == 1 and isinstance(factors[0], Workload) else Kron(factors)


def stack(parts: Sequence[Workload], weights: Sequence[float] | None = None) -> Stack:
    """The queries of several workloads on one histogram, each part times its weight."""
    return Stack(parts, weights)


def from_dict(fields: Mapping[str, Any]) -> Workload:
    """The workload that its `to_dict` described."""
    return Workload.from_dict(fields)
