"""Least squares from noisy moments: the coefficients of a column explained by others.

With one explaining column both coefficients are quotients, and have Fieller's intervals: without
ends where its noisy variance may be 0. With several, noise and sampling are carried through the
normal equations to first order, so that intervals are approximate. Directions in which explaining
columns vary less than noise alone could have made them are held at that level, a ridge that noise
and noisy numbers decide (`least_scatter`), and then no coefficient has bounds. Sampling errors take
the residuals to be independent of the explaining columns. Proof: docs/proofs/readings.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.release.moments import COUNT, NoisyMoments
from muhat.release.population import DEVIATIONS
from muhat.release.quotients import Form, Quotient
from muhat.release.readings import ReadLine, least_scatter, product, scatter

INTERCEPT = "intercept"


def regression_lines(moments: NoisyMoments, columns: Sequence[str]) -> tuple[ReadLine, ...]:
    """The intercept, and a slope for every explaining column; the first column is explained."""
    explained, *explaining = columns
    if len(explaining) == 1:
        return _one_slope(moments, explained, explaining[0])
    return _Normal(moments, explained, tuple(explaining)).lines()


def _one_slope(moments: NoisyMoments, explained: str, by: str) -> tuple[ReadLine, ReadLine]:
    """y = a + b·x: both are quotients by the scatter of x."""
    number = np.maximum(moments.count, 2.0)
    bottom, top = scatter(moments, by, by), scatter(moments, by, explained)
    least = least_scatter(moments, [by])
    slope = Quotient.of(moments, top, bottom).held(least)
    varies, of_explained = (moments.of_column(name).variance() for name in (by, explained))
    shared = top.value(moments) / number**2

    def draw_slope(theta: Floats, z: float) -> Floats:
        """Σ(u − m)·residual: N·S_u² times the residuals' variance at this slope."""
        left = np.maximum(of_explained - 2 * theta * shared + theta**2 * varies, 0.0)
        return np.asarray(z**2 * number**3 * varies * left)

    # Seen from x = 0, the intercept is (Σv·Σu'² − Σu'v·Σu')/scatter, with u' = u − zero.
    center, half = moments.centers[by], moments.half_widths[by]
    zero = -center / half
    one, first, second = (Form.of(moments, term) for term in (COUNT, (by,), (explained,)))
    squares = one - Form.of(moments, (by, by))
    from_zero = first - one * zero
    squares = squares - first * (2 * zero) + one * zero**2
    both = Form.of(moments, product(by, explained)) - second * zero
    intercept = Quotient.of(moments, second * squares - both * from_zero, bottom).held(least)
    away = zero - np.clip(moments.sum_of((by,)) / number, -1, 1)
    # Where the slope is held back, the intercept goes with it: the line still meets the means.
    through = moments.sum_of((explained,)) / number * slope.bottom + away * slope.top
    intercept = replace(intercept, top=np.where(intercept.sure, intercept.top, through))
    left = np.clip(of_explained - shared**2 / np.maximum(varies, 1e-100), 0.0, of_explained)

    def draw_intercept(theta: Floats, z: float) -> Floats:
        spread = np.maximum(intercept.bottom, 0.0)
        return np.asarray(z**2 * left * spread * (spread / number + number * away**2))

    in_y, shift = moments.half_widths[explained], moments.centers[explained]
    everywhere = (-math.inf, math.inf)
    return (
        ReadLine(intercept, everywhere, draw_intercept, INTERCEPT, shift=shift, unit=in_y),
        ReadLine(slope, everywhere, draw_slope, by, unit=in_y / half),
    )


@dataclass(frozen=True, eq=False)
class _Normal:
    """The normal equations M·β = k of every group, the intercept first."""

    moments: NoisyMoments
    explained: str
    explaining: tuple[str, ...]

    @property
    def _size(self) -> int:
        return 1 + len(self.explaining)

    @cached_property
    def _number(self) -> Floats:
        return np.maximum(self.moments.count, float(self._size + 1))

    @cached_property
    def _centered(self) -> tuple[Floats, NDArray[np.bool_]]:
        """Σ(u − m)(u − m)ᵀ, of shape (groups, p, p), held above noise; and where it was above."""
        moments, names = self.moments, self.explaining
        found = np.array(
            [[scatter(moments, a, b).value(moments) for b in names] for a in names]
        ).transpose(2, 0, 1)
        sizes, turns = np.linalg.eigh(found / self._number[:, None, None])
        least = np.maximum(least_scatter(moments, names) / self._number, 1e-12)
        held = np.maximum(sizes, least[:, None])
        return (turns * held[:, None, :]) @ turns.transpose(0, 2, 1), sizes[:, 0] > least

    @cached_property
    def _inverse(self) -> Floats:
        """M⁻¹, of shape (groups, 1 + p, 1 + p)."""
        centered, _ = self._centered
        means = np.array([self._mean(name) for name in self.explaining]).T[:, :, None]
        inverse = np.linalg.inv(centered)
        whole = np.empty((self.moments.groups, self._size, self._size))
        whole[:, 1:, 1:] = inverse
        whole[:, 1:, :1] = -inverse @ means
        whole[:, :1, 1:] = -(means.transpose(0, 2, 1) @ inverse)
        whole[:, 0, 0] = 1 / self._number
        whole[:, :1, :1] += means.transpose(0, 2, 1) @ inverse @ means
        return whole

    def _mean(self, name: str) -> Floats:
        return np.clip(self.moments.sum_of((name,)) / self._number, -1, 1)

    @cached_property
    def _beta(self) -> Floats:
        """The coefficients in units of u, of shape (groups, 1 + p)."""
        moments = self.moments
        shared = [scatter(moments, name, self.explained).value(moments) for name in self.explaining]
        slopes = np.linalg.solve(
            self._centered[0], (np.array(shared) / self._number).T[:, :, None]
        )[:, :, 0]
        means = np.array([self._mean(name) for name in self.explaining]).T
        first = self._mean(self.explained) - (slopes * means).sum(axis=1)
        return np.column_stack([first, slopes])

    @cached_property
    def _parts(self) -> tuple[Floats, Floats, Floats]:
        """What a unit of every table adds to M, to k and to Σv², by table."""
        terms, names = self.moments.terms, self.explaining
        place = {name: index + 1 for index, name in enumerate(names)}
        matrix = np.zeros((len(terms), self._size, self._size))
        right, squared = np.zeros((len(terms), self._size)), np.zeros(len(terms))
        for index, term in enumerate(terms):
            if term == COUNT:
                # Σu² = N − Σ(1 − u²).
                matrix[index] = np.eye(self._size)
                squared[index] = 1.0
            elif term == (self.explained,):
                right[index, 0] = 1.0
            elif term == (self.explained, self.explained):
                squared[index] = -1.0
            elif self.explained in term:
                (other,) = (name for name in term if name != self.explained)
                right[index, place[other]] = 1.0
            elif len(term) == 1:
                matrix[index, 0, place[term[0]]] = matrix[index, place[term[0]], 0] = 1.0
            else:
                i, j = (place[name] for name in term)
                matrix[index, i, j] = matrix[index, j, i] = -1.0 if i == j else 1.0
        mixed = self.moments.mixed.T
        return np.tensordot(mixed, matrix, axes=1), mixed @ right, mixed @ squared

    @cached_property
    def _residual_variance(self) -> Floats:
        """That of the residuals, and 1.645 deviations of its noise; at most that of v."""
        matrix, right, squared = self._parts
        beta = self._beta
        weights = (
            squared[:, None]
            - 2 * np.einsum("ti,gi->tg", right, beta)
            + np.einsum("tij,gi,gj->tg", matrix, beta, beta)
        )
        left = (weights * self.moments.values).sum(axis=0)
        left = left + DEVIATIONS * self.moments.error(weights)
        most = self._number * self.moments.of_column(self.explained).variance()
        return np.asarray(np.clip(left, 0.0, most) / (self._number - self._size))

    def lines(self) -> tuple[ReadLine, ...]:
        """A line a coefficient, in the units of the columns."""
        moments, (matrix, right, _), inverse = self.moments, self._parts, self._inverse
        halves = np.array([moments.half_widths[name] for name in self.explaining])
        centers = np.array([moments.centers[name] for name in self.explaining])
        turned = np.zeros((self._size, self._size))
        turned[0, 0], turned[0, 1:] = 1.0, -centers / halves
        turned[1:, 1:] = np.diag(1 / halves)
        turned *= moments.half_widths[self.explained]
        own = np.einsum("ji,gil->gjl", turned, inverse)
        # dβ = M⁻¹(dk − dM·β).
        moved = right[:, None, :] - np.einsum("tij,gj->tgi", matrix, self._beta)
        weights = np.einsum("gjl,tgl->jtg", own, moved)
        values = self._beta @ turned.T
        varies = np.einsum("gjl,jl->jg", own, turned) * self._residual_variance
        names = (INTERCEPT, *self.explaining)
        shifts = (moments.centers[self.explained], *[0.0] * len(self.explaining))
        return tuple(
            self._line(name, values[:, j], weights[j], varies[j], shifts[j])
            for j, name in enumerate(names)
        )

    def _line(
        self, name: str, value: Floats, weights: Floats, varies: Floats, shift: float
    ) -> ReadLine:
        quotient = Quotient(
            self.moments,
            value,
            np.ones_like(value),
            weights,
            np.zeros_like(weights),
            (0.0, 0.0, 0.0),
            self._centered[1],
        )
        everywhere = (-math.inf, math.inf)
        return ReadLine(quotient, everywhere, lambda theta, z: z**2 * varies, name, shift=shift)
