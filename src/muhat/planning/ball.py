"""The recipes that compete for a ball where squares are released beside the sums.

By default squares are released where they cost the mean nothing: those of every column with normal
noise and n public, the length's alone where n is secret. Whatever has the integers of a ball, in
half-widths of the domain, will do: ellipsoids along the axes, cross-polytopes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from muhat.domains.blocks import Block
from muhat.mechanisms.sums.ball_squares import ball_recipe
from muhat.mechanisms.sums.joint import bounded_share
from muhat.mechanisms.sums.mechanisms import MECHANISMS
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.laws import LAWS

if TYPE_CHECKING:
    from muhat.planning.task import Task


def squared_block(task: Task) -> Block | None:
    """The block of a domain whose lattice is a ball along the axes; None if it is another."""
    if task.clip is not None or len(task.body.blocks) != 1:
        return None
    (block,) = task.body.blocks
    radius = block.lattice.axis_radius
    if radius is None:
        return None
    axes = np.ones(task.domain.dim) if block.transform is None else block.transform
    same = np.allclose(radius * axes, task.domain.half_widths, rtol=1e-9, atol=0)
    return block if same and (block.center == task.domain.center).all() else None


def ball_recipes(task: Task, names: Sequence[str], share: float | None = None) -> dict[str, Recipe]:
    """A recipe with squares for each of the named mechanisms that has room for them.

    With a `share` of the squared budget for the sums, the number of records has the rest.
    """
    wanted = task.population is not False and (task.population or task.contributions == 1)
    if not wanted or (task.statistic == "sum" and task.is_secret):
        return {}
    known = [MECHANISMS[name] for name in names if MECHANISMS[name].beside_ball]
    if not task.population:
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
            each=bool(task.population),
        )
        for each in known
    }
