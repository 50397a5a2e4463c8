"""Records moved into the parts of a sum or image, in floats, each record by itself.

Element-wise operations in a fixed order: a record's bits never depend on its neighbours. Privacy
rests on the integer check that comes after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from muhat.data.box_kernel import whole_records
from muhat.data.columns import Column, FloatArray
from muhat.data.exact import split
from muhat.data.gauge_kernel import gauge_functions, norms
from muhat.data.points_kernel import PointsKernel
from muhat.data.simplex_kernel import SimplexKernel
from muhat.domains.lattice import Clip, GaugeClip, LiftClip, PointsLattice, SimplexLattice
from muhat.domains.moment_tensor import MomentTensor
from muhat.domains.vectors import LARGEST_OFFSET

ClipFunction = Callable[[Sequence[Column]], list[FloatArray]]


def clip_function(clip: Clip) -> ClipFunction:
    """Columns of records in, coordinates of points of the clip's domain out.

    A coordinate that is missing or not finite counts as the centre's; of listed points the whole
    record counts as the default one then.
    """
    if isinstance(clip, GaugeClip):
        return _gauge_function(clip)
    if isinstance(clip, LiftClip):
        return _lift_function(clip)
    if isinstance(clip, SimplexLattice):
        return _simplex_function(clip)
    return _points_function(clip)


def read(column: Column, missing: float) -> FloatArray:
    """The values as floats, with a number of one's own for those that are not there."""
    values, low = split(column)
    if low is not None:
        values = values + low
    return np.where(column.present(), values, missing)


def blanked(clipped: list[FloatArray], columns: Sequence[Column]) -> list[FloatArray]:
    """Not-a-number all over where a record is not complete: it is to be dropped."""
    whole = whole_records(columns)
    return [np.where(whole, values, np.nan) for values in clipped]


def in_unit_ball(values: list[FloatArray]) -> list[FloatArray]:
    """x/max(‖x‖, 1), by way of x/max(‖x‖_∞, 1), whose squares cannot overflow."""
    largest = np.maximum(norms(values, np.inf), 1.0)
    near = [value / largest for value in values]
    length = np.maximum(norms(near, 2), 1.0)
    # A value that was scaled down has the length 1 at least, and ends on the sphere.
    return [value / length for value in near]


def monomials(order: int, inside: Sequence[FloatArray]) -> list[FloatArray]:
    """√m(α)·x^α for every multiset α of indices, in the order of `MomentTensor`."""
    tensors = MomentTensor(order, len(inside))
    roots = np.sqrt(tensors.multiplicities).tolist()
    lifted = []
    for multiset, root in zip(tensors.indices.tolist(), roots, strict=True):
        product = inside[multiset[0]] * root
        for index in multiset[1:]:
            product = product * inside[index]
        lifted.append(product)
    return lifted


def _gauge_function(clip: GaugeClip) -> ClipFunction:
    functions = gauge_functions(clip.gauge, 1.0)

    def function(columns: Sequence[Column]) -> list[FloatArray]:
        moved = []
        for column, center in zip(columns, clip.center, strict=True):
            # Halves, because x − c itself can overflow.
            moved.append(read(column, center) * 0.5 - center * 0.5)
        clipped: list[FloatArray] = []
        for block, gauge in functions:
            far = np.maximum(norms(moved[block], np.inf), LARGEST_OFFSET)
            near = [2.0 * (values * (LARGEST_OFFSET / far)) for values in moved[block]]
            shrink = np.maximum(gauge(near), 1.0)
            for values, center in zip(near, clip.center[block], strict=True):
                clipped.append(center + values / shrink)
        return clipped

    return function


def _lift_function(clip: LiftClip) -> ClipFunction:
    offset = clip.offset or (0.0,) * clip.dim

    def function(columns: Sequence[Column]) -> list[FloatArray]:
        inside = in_unit_ball([read(column, 0.0) for column in columns])
        lifted = monomials(clip.order, inside)
        return [values + shift for values, shift in zip(lifted, offset, strict=True)]

    return function


def _simplex_function(clip: SimplexLattice) -> ClipFunction:
    kernel = SimplexKernel(clip)
    offset = clip.offset or (0.0,) * clip.dim

    def function(columns: Sequence[Column]) -> list[FloatArray]:
        shares = kernel.shares(columns)
        return [values + shift for values, shift in zip(shares, offset, strict=True)]

    return function


def _points_function(clip: PointsLattice) -> ClipFunction:
    kernel = PointsKernel(clip)
    points = clip.points
    if points is None:
        raise ValueError("listed points are needed to move records to them")

    def function(columns: Sequence[Column]) -> list[FloatArray]:
        codes = kernel.codes(columns)
        return [np.asarray(coordinate[codes]) for coordinate in points.T]

    return function
