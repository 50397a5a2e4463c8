"""Records onto a ball lattice, whitened or not: clip radially, round, and check in integers.

Only element-wise + − × ÷ √ and comparisons, coordinates in ascending order: a record's bits
never depend on its neighbours, its place in a batch or the layout. docs/proofs/integers.md
has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from fractions import Fraction

import numpy as np

from muhat.domains.box_kernel import SQUARE_UNIT
from muhat.domains.gauges import Gauge
from muhat.records.columns import Column, FloatArray, Mask, whole_records
from muhat.records.exact import Steps, signed, split
from muhat.records.tiles import sum_of_squares

_FAR_OUT = 2.0**20


class Workspace:
    """Buffers for blocks of up to `rows` records, allocated once: page faults cost more than √."""

    def __init__(self, record_dim: int, dim: int, dense: bool, rows: int) -> None:
        self._moved = np.empty((record_dim, rows))
        # A dense matrix needs every coordinate to the end; a triangle may overwrite them.
        self._whitened = np.empty((dim, rows)) if dense else self._moved
        self._rounded = np.empty((dim, rows))
        self._vectors = np.empty((4, rows))
        self._assign(rows)

    def _assign(self, rows: int) -> None:
        self.rows = rows
        self.moved: FloatArray = self._moved[:, :rows]
        self.whitened: FloatArray = self._whitened[:, :rows]
        self.rounded: FloatArray = self._rounded[:, :rows]
        self.squares: FloatArray = self._vectors[0, :rows]
        self.term: FloatArray = self._vectors[1, :rows]
        self.shrink: FloatArray = self._vectors[2, :rows]
        self.norms: FloatArray = self._vectors[3, :rows]

    def part(self, rows: int) -> Workspace:
        """The same buffers, cut to fewer records."""
        part = copy(self)
        part._assign(rows)
        return part


class BallKernel:
    """Puts blocks of records on a ball lattice; holds buffers, so one a thread.

    `center`, `clip_radius`, `whitening`, `axes` and `gauge` are the lattice's (`ball_lattice.py`),
    the grid is 2^exponent, and `radius` the integer one. With `squares` those of every coordinate
    come after the sums: (q·g)² has one rounding as a float, and another magic add rounds it to a
    multiple of 2^45·g².
    """

    absent: Steps | None = None
    """What a record adds of which nothing is there; None stands for zeros."""

    def __init__(
        self,
        center: Sequence[float],
        clip_radius: float,
        exponent: int,
        radius: int,
        *,
        whitening: Sequence[Sequence[float]] | None = None,
        axes: Sequence[float] | None = None,
        gauge: Gauge | None = None,
        squares: bool = False,
    ) -> None:
        size = math.frexp(clip_radius)[1]
        # Squares of ordinary radii are safe; others are brought near 1 by a power of two.
        shift = 0 if abs(size) <= 100 else min(max(-size, -1000), 1000)
        self._scale = 2.0**shift
        self._radius = math.ldexp(clip_radius, shift)
        grid = math.ldexp(1.0, exponent + shift)
        # Arrays of no dimension: numpy converts a plain float anew in every call.
        self._magic = np.array(1.5 * 2.0**52 * grid)
        self._bits = int(self._magic.view(np.int64))
        self._squares = squares
        # The step is a power of two between 2^−145 and 2^55 by now, so its square is a float.
        self._square_magic = np.array(1.5 * 2.0**52 * SQUARE_UNIT * grid**2)
        self._square_bits = int(self._square_magic.view(np.int64))
        dim = len(center if whitening is None else whitening)
        self._limit = acceptance_limit(radius, dim, Fraction(grid))
        self._center, self._whitening, self._axes = center, whitening, axes
        self._gauges = [] if gauge is None else gauge.functions(self._scale)
        self._shape = (len(center), dim, _is_dense(whitening or ()))
        self._space = Workspace(*self._shape, 0)

    def sums(self, columns: Sequence[Column], *, drop: bool) -> tuple[list[int], int]:
        """Σ q of every coordinate over a block of at most 2^17 records, and records counted."""
        totals, counted, _ = self._block(columns, drop, keep=False)
        rows = len(columns[0].values)
        bits = [*[self._bits] * self._shape[1], *[self._square_bits] * self._shape[1]]
        pairs = zip(totals, bits, strict=False)
        return [signed(total - rows * offset) for total, offset in pairs], counted

    def integers(self, columns: Sequence[Column], *, drop: bool) -> Steps:
        """q of every record of a block, shape (rows, d); dropped records are rows of zeros."""
        _, _, rounded = self._block(columns, drop, keep=True)
        steps = rounded.view(np.int64).T - self._bits
        if self._squares:
            squares = [self._squared(place) - self._square_bits for place in rounded]
            steps = np.concatenate([steps, np.stack(squares, axis=1)], axis=1)
        return np.ascontiguousarray(steps)

    def _block(
        self, columns: Sequence[Column], drop: bool, *, keep: bool
    ) -> tuple[list[int], int, FloatArray]:
        """Sums of the words (squares' too, unless words are kept), records counted, and the words.

        Ordinary blocks pass through one buffer that stays in the cache; the words of all
        coordinates are kept only where single records have to be put right afterwards.
        """
        rows = len(columns[0].values)
        if self._space.rows < rows:
            self._space = Workspace(*self._shape, rows)
        space = self._space.part(rows)
        moved = self._move(columns, space)
        squares = sum_of_squares(moved, space.squares, space.term)
        finite = np.isfinite(squares)
        dropped = _invalid_records(columns) if drop else np.zeros(0, bool)
        odd = np.flatnonzero(~finite)
        if not (keep or len(odd) or dropped.any()):
            totals = self._clip_and_round(moved, squares, None, space)
            if totals:
                return totals, rows, space.rounded
        self._clip_and_round(moved, squares, space.rounded, space)
        if len(odd):
            picked = [column.pick(odd) for column in columns]
            space.rounded[:, odd] = self._odd_records(picked)
            if drop:
                dropped[odd] = ~whole_records(picked)
        if drop:
            space.rounded[:, dropped] = self._magic
        counted = rows - int(np.count_nonzero(dropped))
        totals = np.add.reduce(space.rounded.view(np.int64), axis=1).tolist()
        if self._squares and not keep:
            totals += [int(np.add.reduce(self._squared(place))) for place in space.rounded]
        return totals, counted, space.rounded

    def _squared(self, words: FloatArray) -> Steps:
        """The words of the squares of one coordinate, in their place."""
        np.subtract(words, self._magic, out=words)
        np.square(words, out=words)
        np.add(words, self._square_magic, out=words)
        return words.view(np.int64)

    def _move(self, columns: Sequence[Column], space: Workspace) -> list[FloatArray]:
        """Coordinates relative to the centre, scaled, in the body of the gauge, and whitened.

        Untouched where they can be.
        """
        moved = []
        for column, center, place in zip(columns, self._center, space.moved, strict=True):
            values, low = split(column)
            if center:
                values = np.subtract(values, center, out=place)
            if low is not None:
                values = np.add(values, low, out=place)
            if self._scale != 1.0:
                values = np.multiply(values, self._scale, out=place)
            if column.valid is not None and not column.valid.all():
                values = np.where(column.valid, values, 0.0)
            moved.append(values)
        if self._gauges:
            moved = self._pull_in(moved, space.moved)
        return self._whiten(moved, space)

    def _pull_in(self, moved: Sequence[FloatArray], out: FloatArray) -> list[FloatArray]:
        """z/max(gauge(z), 1), block by block; not-a-number where the gauge is not finite."""
        inside = []
        for block, function in self._gauges:
            gauge = np.maximum(function(moved[block]), 1.0)
            gauge[np.isinf(gauge)] = np.nan
            for values, place in zip(moved[block], out[block], strict=True):
                inside.append(np.divide(values, gauge, out=place))
        return inside

    def _whiten(self, moved: list[FloatArray], space: Workspace) -> list[FloatArray]:
        """y_i = Σ_j W_ij z_j, j ascending; a triangle from its last row up, so that y may be z."""
        out = space.whitened
        if self._axes is not None:
            pairs = zip(moved, self._axes, out, strict=True)
            return [np.multiply(values, axis, out=place) for values, axis, place in pairs]
        if self._whitening is None:
            return moved
        term = np.empty(out.shape[1])
        for index in range(len(self._whitening) - 1, -1, -1):
            row = self._whitening[index]
            total = np.multiply(moved[0], row[0])
            for weight, values in zip(row[1:], moved[1:], strict=False):
                np.multiply(values, weight, out=term)
                np.add(total, term, out=total)
            out[index] = total
        return list(out)

    def _clip_and_round(
        self,
        moved: Sequence[FloatArray] | FloatArray,
        squares: FloatArray,
        places: FloatArray | None,
        space: Workspace,
    ) -> list[int]:
        """The words y_j·r/max(√s, r) + m into their places, if any; returns their sums."""
        shrink = np.sqrt(squares, out=space.shrink)
        np.maximum(shrink, self._radius, out=shrink)
        np.divide(self._radius, shrink, out=shrink)
        return self._round(moved, shrink, places, space)

    def _round(
        self,
        moved: Sequence[FloatArray] | FloatArray,
        shrink: FloatArray,
        places: FloatArray | None,
        space: Workspace,
    ) -> list[int]:
        """Round y·shrink to the grid, and make the centre of what is not proved inside the ball.

        The sums are empty if that happened: the words that were summed are not the final ones.
        """
        sums, squares = [], []
        # In place, one coordinate after another, so that all of it stays in the cache.
        term, words, norms = space.term, space.term.view(np.int64), space.norms
        norms.fill(0.0)
        for index, values in enumerate(moved):
            np.multiply(values, shrink, out=term)
            np.add(term, self._magic, out=term)
            sums.append(int(np.add.reduce(words)))
            if places is not None:
                places[index] = term
            np.subtract(term, self._magic, out=term)
            np.square(term, out=term)
            np.add(norms, term, out=norms)
            if self._squares:
                np.add(term, self._square_magic, out=term)
                squares.append(int(np.add.reduce(words)))
        accepted = norms <= self._limit
        if accepted.all():
            return [*sums, *squares]
        if places is not None:
            places[:, ~accepted] = self._magic
        return []

    def _odd_records(self, columns: Sequence[Column]) -> FloatArray:
        """Words of the few records with a value that is not finite, or with huge ones."""
        rows = len(columns[0].values)
        halves = np.empty((len(columns), rows))
        for column, center, place in zip(columns, self._center, halves, strict=True):
            high, low = split(column)
            # Halves, because x − c itself can overflow; exact but for the tiniest floats.
            np.subtract(high * 0.5, center * 0.5, out=place)
            if low is not None:
                place += low * 0.5
            place[~column.present()] = 0.0
        space = Workspace(*self._shape, rows)
        inside = np.multiply(halves, 2.0 * self._scale)
        if self._gauges:
            halves = inside = self._pull_all_in(inside, halves)
        moved = self._whiten(list(inside), space)
        squares = sum_of_squares(moved, space.squares, space.term)
        huge = ~np.isfinite(squares)
        self._clip_and_round(moved, squares, space.rounded, space)
        if huge.any():
            space.rounded[:, huge] = self._huge_records(halves[:, huge])
        return space.rounded

    def _pull_all_in(self, moved: FloatArray, halves: FloatArray) -> FloatArray:
        """Every record in the body of the gauge; if it is too far out, by its direction alone."""
        inside = np.stack(self._pull_in(list(moved), np.empty_like(moved)))
        for block, function in self._gauges:
            part = inside[block]
            far = ~np.isfinite(part).all(axis=0)
            if far.any():
                direction = _near_one(halves[block][:, far])
                # A gauge is exact above 1 only, so that is where to ask for it.
                direction *= _FAR_OUT / function(list(direction))
                part[:, far] = direction / function(list(direction))
        return inside

    def _huge_records(self, directions: FloatArray) -> FloatArray:
        """Words of records whose squares overflow: only their direction matters."""
        space = Workspace(*self._shape, directions.shape[1])
        direction = _near_one(np.stack(self._whiten(list(_near_one(directions)), space)))
        norm = np.sqrt(sum_of_squares(direction, space.squares, space.term))
        self._round(direction, self._radius / norm, space.rounded, space)
        return space.rounded


def _near_one(vectors: FloatArray) -> FloatArray:
    """Each record scaled by the power of two that puts its largest coordinate in [½, 1)."""
    largest = np.abs(vectors[0])
    for vector in vectors[1:]:
        np.maximum(largest, np.abs(vector), out=largest)
    scaled: FloatArray = np.ldexp(vectors, -np.frexp(largest)[1])
    return scaled


def _is_dense(rows: Sequence[Sequence[float]]) -> bool:
    """Whether some row of the whitening needs coordinates beyond its own."""
    return any(len(row) != index + 1 for index, row in enumerate(rows))


def _invalid_records(columns: Sequence[Column]) -> Mask:
    invalid = np.zeros(len(columns[0].values), bool)
    for column in columns:
        if column.valid is not None:
            invalid |= ~column.valid
    return invalid


def acceptance_limit(radius: int, dim: int, grid: Fraction) -> float:
    """R²g²(1 − (d + 4)u), rounded down: a float sum of squares below it proves Σ q² ≤ R²."""
    exact = (radius * grid) ** 2 * (1 - Fraction(dim + 4, 1 << 53))
    limit = float(exact)
    return limit if Fraction(limit) <= exact else math.nextafter(limit, 0.0)
