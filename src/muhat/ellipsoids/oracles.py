"""The smallest ellipsoid around a body that only an oracle knows.

An oracle maximises quadratic forms: for a matrix A ⪰ 0 it returns a point x of the body where
xᵀAx is large, and how large it can be at most. That is all the search of `generation` asks for,
so whoever can maximise quadratic forms can have the best noise: Nikolov and Tang's theorem.
An oracle that reaches a part α of the largest value gives an ellipsoid within 1/√α of the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._progress import Progress
from muhat.ellipsoids.finite import FiniteResult, check_tolerance, coordinate_weights, finish
from muhat.ellipsoids.generation import FoundEllipsoid, smallest_around
from muhat.ellipsoids.spans import Array, Indices, Span
from muhat.ellipsoids.threads import one_thread
from muhat.ellipsoids.verification import TINY, UNIT, gamma
from muhat.errors import InvalidInput

Oracle = Callable[[Array], object]
"""A (d, d) ↦ a point (d,), or several (k, d), of the body; or (points, bound).

`bound` is at least xᵀAx for every x of the body. Without one, the largest value at the points
returned is taken to be the part `approximation` of the largest there is."""

ROUNDS = 400
FLAT = 1e-8
MOST_ASKED = 8
"""How many points a round asks for, each across those before it."""

ROUNDING = 64
"""Roundings a dimension that a quadratic form's value at an exact oracle's point may carry."""

LEAST_SIZE, LARGEST_SIZE = 1e-100, 1e100
STEPS_SHOWN = 1000


class OracleBody:
    """The convex hull of a set and its opposite, as the oracle of the set describes it.

    Points are taken to belong to the set exactly as they are returned.
    """

    roundings = 1
    slip: Array | None = None
    shifted = False
    complete = False

    def __init__(self, oracle: Oracle, dim: int, approximation: float) -> None:
        self._oracle, self._part = oracle, approximation
        self._known = np.zeros((dim, 0))
        self.span = Span(np.arange(dim), np.eye(dim))
        self.sizes = np.empty(dim)
        for j in range(dim):
            axis = np.zeros((dim, dim))
            axis[j, j] = 1.0
            self.sizes[j] = math.sqrt(self._ask(axis)[1]) * (1 + 8 * UNIT)
        if not ((self.sizes > LEAST_SIZE) & (self.sizes < LARGEST_SIZE)).all():
            raise InvalidInput(
                f"must describe a body that reaches from {LEAST_SIZE:g} to {LARGEST_SIZE:g} "
                "along every axis",
                parameter="oracle",
                hint="Leave out coordinates that are always 0, and choose units near 1.",
            )
        self._span_everything()

    def _ask(self, A: Array) -> tuple[Indices, float]:
        """Labels of the points for A, new ones added to what is known, and the bound."""
        points, claimed = self._answer(A)
        values = np.einsum("ij,ij->j", points, A @ points)
        best = float(values.max())
        if claimed is not None and not claimed >= best * (1 - 1e-9):
            raise InvalidInput(
                "returned a bound below the value at its own point", parameter="oracle"
            )
        bound = best / self._part if claimed is None else max(claimed, best)
        # What an exact oracle's point loses by rounding, relative to the terms of the form.
        size = float(np.einsum("ij,ij->j", np.abs(points), np.abs(A) @ np.abs(points)).max())
        bound = bound + ROUNDING * gamma(len(A) + 4) * size
        known = np.einsum("ij,ij->j", self._known, A @ self._known)
        if known.max(initial=0.0) > bound * (1 + 1e-9):
            raise InvalidInput(
                "missed a point that it had returned before: the largest xᵀAx is larger than "
                "it says",
                parameter="oracle",
                hint="An oracle that is not exact returns (point, bound), or the part that it "
                "always reaches is given as approximation=.",
            )
        labels = np.array([self._label(x) for x in points.T], np.intp)
        return labels, bound

    def _answer(self, A: Array) -> tuple[Array, float | None]:
        """The oracle's points as columns, and its bound."""
        A.flags.writeable = False
        answer = self._oracle(A)
        points, bound = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)
        try:
            columns = np.atleast_2d(np.asarray(points, np.float64)).T
            number = None if bound is None else float(bound)
        except (TypeError, ValueError, OverflowError):
            columns, number = np.zeros((0, 0)), None
        if columns.ndim != 2 or len(columns) != len(A) or not columns.size:
            raise InvalidInput(
                f"must return a point of {len(A)} numbers, several as rows, or (points, bound)",
                parameter="oracle",
            )
        if not np.isfinite(columns).all() or not (number is None or math.isfinite(number)):
            raise InvalidInput("must return finite numbers", parameter="oracle")
        return columns, number

    def _label(self, x: Array) -> int:
        """The number of a point; one that was there before, or its opposite, keeps its own."""
        same = np.minimum(
            np.abs(self._known - x[:, None]).max(axis=0, initial=0.0),
            np.abs(self._known + x[:, None]).max(axis=0, initial=0.0),
        )
        if len(same) and same.min() == 0:
            return int(same.argmin())
        self._known = np.column_stack([self._known, x])
        return self._known.shape[1] - 1

    def _span_everything(self) -> None:
        """Ask across what is known until it spans the space."""
        dim = len(self.sizes)
        for _ in range(dim + 1):
            U, sizes, _ = np.linalg.svd(self._known / self.sizes[:, None])
            rank = int(np.sum(sizes > FLAT))
            if rank == dim:
                return
            across = U[:, rank:].T / self.sizes
            if self._ask(across.T @ across)[1] <= FLAT**2:
                break
        raise InvalidInput(
            "describes a flat body",
            parameter="oracle",
            hint="Give it in coordinates of the subspace that it lies in.",
        )

    def start(self, p: float, weights: Array) -> FoundEllipsoid:
        labels = np.arange(self._known.shape[1])
        return FoundEllipsoid(labels, self._known, np.inf, np.inf)

    def farthest(self, W: Array, shift: Array, wanted: int, enough: float) -> FoundEllipsoid:
        """As `GeneratedBody.farthest`; further points are looked for across those found."""
        A = W.T @ W
        # |WᵀW − A| ≤ γ|W|ᵀ|W|, and |s| ≤ sizes on the body.
        lost = gamma(len(W) + 8) * float(np.sum((np.abs(W) @ self.sizes) ** 2))
        labels, bound = self._ask(A)
        asked, seen = [labels], 0.0
        for _ in range(min(wanted, MOST_ASKED, len(W))):
            found = self._known[:, np.concatenate(asked)]
            Z = W @ found
            lengths = np.sqrt(np.sum(Z**2, axis=0))
            seen = float(lengths.max())
            if lengths[-1] <= enough or len(np.concatenate(asked)) >= len(W):
                break
            Q, _ = np.linalg.qr(Z)
            rest = W - Q @ (Q.T @ W)
            asked.append(self._ask(rest.T @ rest)[0])
        labels = np.unique(np.concatenate(asked))
        outside = np.sum((W @ self._known[:, labels]) ** 2, axis=0) > 1
        labels = labels[outside]
        proved = math.sqrt(bound + lost + TINY) * (1 + 8 * UNIT)
        return FoundEllipsoid(labels, self._known[:, labels], proved, seen)

    def half_widths(self) -> tuple[Array, Array]:
        return np.zeros(len(self.sizes)), self.sizes


def around_oracle(
    oracle: Oracle,
    dim: int,
    p: float,
    tol: float,
    weights: ArrayLike | None = None,
    approximation: float = 1.0,
) -> FiniteResult:
    """The smallest ellipsoid around the body of an oracle in R^dim.

    >>> def diamond(A):  # the largest xᵀAx of the cross-polytope is at a corner
    ...     return np.eye(len(A))[np.argmax(np.diag(A))]
    >>> f"{around_oracle(diamond, 3, 2, 1e-9).value:.6f}"  # √3
    '1.732051'
    """
    if not callable(oracle):
        raise InvalidInput("must be a function of a matrix", parameter="oracle")
    d, p, tol = _check.count("dim", dim), _check.norm_order(p), check_tolerance(tol)
    part = _check.positive("approximation", approximation)
    if part > 1:
        raise InvalidInput("must be at most 1", parameter="approximation", value=f"{part:g}")
    omega, unit = coordinate_weights(weights, d)
    with Progress(STEPS_SHOWN, "smallest ellipsoid") as progress:
        with one_thread():
            body = OracleBody(oracle, d, part)
        done, first = 0, math.nan

        def watch(gap: float) -> None:
            nonlocal done, first
            if not math.isfinite(first):
                first = gap
            near = math.log(first / gap) / math.log(first / tol) if gap > tol < first else 1.0
            now = int(STEPS_SHOWN * min(max(near, 0.0), 1.0))
            progress.advance(max(now - done, 0))
            done = max(done, now)

        with one_thread(), np.errstate(all="ignore"):
            outcome = smallest_around(body, p, tol, omega, rounds=ROUNDS, watch=watch)
            return finish(body, outcome, p, tol, omega, 1.0, unit)
