"""The recipes that compete where more than sums is released: for the columns of a box, for a ball.

Beside the sums these are the numbers of recorded values, where values may be missing, and the
squares, from which the variance of every column is known and with it the sampling error. Squares
are released where they cost the mean nothing, with normal and with Laplace noise, and elsewhere if
they are asked for.

Of a ball these are the squares: those of every column with normal noise and n public, the length's
alone where n is secret. Whatever has the integers of a ball, in
half-widths of the domain, will do: ellipsoids along the axes, cross-polytopes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from muhat._words import Parameter, given
from muhat.domains import Box
from muhat.domains.blocks import Block
from muhat.domains.lattice import BoxLattice, ColumnsLattice
from muhat.domains.vectors import Vector
from muhat.ellipsoids import smallest_ellipsoid
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.ball_squares import ball_recipe
from muhat.mechanisms.sums.calibration import SumMechanism
from muhat.mechanisms.sums.columns import columns_recipe
from muhat.mechanisms.sums.counted_sum import counted_sum
from muhat.mechanisms.sums.joint import bounded_share, share_for_mean
from muhat.mechanisms.sums.mechanisms import MECHANISMS
from muhat.mechanisms.sums.pair import pair_recipe
from muhat.mechanisms.sums.recipe import Recipe
from muhat.mechanisms.sums.staircase import STAIRCASE
from muhat.noise.law import ScaleFamily
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection

if TYPE_CHECKING:
    from muhat.planning.task import Task


LOPSIDED = 1 - 2.0**-30
"""Squares are free about the middle of the bounds; below this the lattice's centre is not it."""


def releases_columns(task: Task) -> bool:
    """Whether more than the sums of a box is released: counts, or squares if they are wanted."""
    if not task.asked.domain.by_column or task.asked.clip is not None:
        return False
    secret_mean = task.asked.statistic == "mean" and task.is_secret
    return secret_mean or task.asked.missing == "drop" or task.asked.population is not False


def column_recipes(
    task: Task, names: Sequence[str], protection: Protection | None = None
) -> dict[str, Recipe]:
    """A recipe for each of the named mechanisms that has something to release beside the sums.

    They guarantee what the task asks for, or for a step of it something else.
    """
    recipes = {}
    secret_mean = task.asked.statistic == "mean" and task.is_secret
    for each in (MECHANISMS[name] for name in names if MECHANISMS[name].beside_columns):
        lattice = _lattice(task, LAWS[each.law])
        if secret_mean or lattice.squares or lattice.counts:
            recipes[each.name] = _recipe(task, each, lattice, protection or task.protection)
    return recipes


def pair_recipes(task: Task) -> list[Recipe]:
    """Stairs for the sum of a single column and its count, where the mean is their ratio."""
    asked = task.asked
    one = asked.domain.by_column and asked.domain.dim == 1 and asked.clip is None
    divided = asked.statistic == "mean" and (task.is_secret or asked.missing == "drop")
    if not (one and divided) or asked.population or not task.privacy.admits_pure:
        return []
    lattice = replace(_lattice(task, LAWS["laplace"]), squares=False)
    found = pair_recipe("pair", lattice, task.protection) if lattice.box.reach[0] else None
    return [] if found is None else [found]


def counted_sums(task: Task, names: Sequence[str]) -> list[Recipe]:
    """Stairs for the sum of a single column and for its count, where values may be missing."""
    asked = task.asked
    one = asked.domain.by_column and asked.domain.dim == 1 and asked.clip is None
    dropped = asked.statistic == "sum" and asked.missing == "drop"
    if not (one and dropped) or asked.population or STAIRCASE.name not in names:
        return []
    lattice = replace(_lattice(task, LAWS["laplace"]), squares=False)
    found = (
        counted_sum(STAIRCASE.name, lattice, task.protection, from_zero=task.is_secret)
        if lattice.box.extent[0]
        else None
    )
    return [] if found is None else [found]


def _recipe(
    task: Task, mechanism: SumMechanism, lattice: ColumnsLattice, protection: Protection
) -> Recipe:
    secret_mean = task.asked.statistic == "mean" and task.is_secret
    share = 0.0
    if secret_mean and not lattice.counts:
        share = 1 - share_for_mean(task.body, task.asked.p, task.asked.weights)
    return columns_recipe(
        "joint" if secret_mean else mechanism.name,
        mechanism.law,
        lattice,
        _axes(task, LAWS[mechanism.law], lattice.box),
        protection,
        count_share=share,
        from_zero=task.asked.statistic == "sum" and task.is_secret,
    )


def _lattice(task: Task, law: ScaleFamily) -> ColumnsLattice:
    """What is summed of every column."""
    assert isinstance(task.asked.domain, Box)
    lower, upper = zip(*task.asked.domain.bounds, strict=True)
    dropped = task.asked.missing == "drop"
    if dropped and task.asked.statistic == "sum":
        box = BoxLattice.with_zero(lower, upper)
    else:
        box = BoxLattice.around(lower, upper)
    return ColumnsLattice(box, squares=_has_squares(task, law, box), counts=dropped)


def _has_squares(task: Task, law: ScaleFamily, box: BoxLattice) -> bool:
    if task.asked.population is False or (task.asked.statistic == "sum" and task.is_secret):
        return False
    if task.asked.population:
        return True
    middle = all(e >= 2 * m * LOPSIDED for e, m in zip(box.extent, box.reach, strict=True))
    free = law.independent and (law.stable or not task.is_secret)
    return middle and free and task.contributions == 1


def _axes(task: Task, law: ScaleFamily, box: BoxLattice) -> Vector:
    """The proportions of the noise on the sums: those that are best without squares and counts."""
    halves = np.array(
        [float(extent * step) / 2 for extent, step in zip(box.extent, box.grid, strict=True)]
    )
    if task.asked.statistic == "sum" and task.is_secret:
        ends = np.abs([task.asked.domain.bounding_box])[0]
        halves = ends.max(axis=0)
    if math.isinf(law.sensitivity_norm):
        return halves
    around = Box(-halves, halves)
    if law.sensitivity_norm == 1:
        return around.laplace_scales(task.asked.p, task.asked.weights)
    return smallest_ellipsoid(around, task.asked.p, "shifted", weights=task.asked.weights).scales


def check_population(task: Task) -> None:
    """Refuse squares that would be of no use."""
    if not task.asked.population:
        return
    in_box = task.asked.domain.by_column and task.asked.clip is None
    if not in_box and squared_block(task) is None:
        raise InvalidInput(
            given("population", True),
            " is for records in a box, a ball or an ellipsoid along the axes.",
        )
    if task.contributions > 1:
        raise InvalidInput(
            given("population", True),
            " needs ",
            given("contributions", 1),
            ": records of one person are not independent draws, so the sampling error is not "
            "known.",
        )
    if task.asked.statistic == "sum" and task.is_secret:
        raise InvalidInput(
            "a sum with a secret n has no population interval: leave ",
            Parameter("population"),
            " out.",
        )


def squared_block(task: Task) -> Block | None:
    """The block of a domain whose lattice is a ball along the axes; None if it is another."""
    if task.asked.clip is not None or len(task.body.blocks) != 1:
        return None
    (block,) = task.body.blocks
    radius = block.lattice.axis_radius
    if radius is None:
        return None
    axes = np.ones(task.asked.domain.dim) if block.transform is None else block.transform
    same = np.allclose(radius * axes, task.asked.domain.half_widths, rtol=1e-9, atol=0)
    return block if same and (block.center == task.asked.domain.center).all() else None


def ball_recipes(task: Task, names: Sequence[str], share: float | None = None) -> dict[str, Recipe]:
    """A recipe with squares for each of the named mechanisms that has room for them.

    With a `share` of the squared budget for the sums, the number of records has the rest.
    """
    wanted = task.asked.population is not False and (
        task.asked.population or task.contributions == 1
    )
    if not wanted or (task.asked.statistic == "sum" and task.is_secret):
        return {}
    known = [MECHANISMS[name] for name in names if MECHANISMS[name].beside_ball]
    if not task.asked.population:
        known = [each for each in known if LAWS[each.law].independent]
    block = squared_block(task) if known else None
    if block is None:
        return {}
    return {
        each.name: ball_recipe(
            each.name if share is None else "joint",
            each.law,
            block,
            task.protection,
            count_share=0.0 if share is None else 1 - bounded_share(share),
            each=bool(task.asked.population),
        )
        for each in known
    }
