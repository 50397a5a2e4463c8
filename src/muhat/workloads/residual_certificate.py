"""What a choice of weights of the parts of a marginal workload is worth, both ways.

For all t ≥ 0 with Σ M_S t_S^q ≤ 1, q = p/(p − 2), and all probabilities π of the ways D in which
neighbours differ, Hölder's inequality and that of Cauchy and Schwarz give

    value ≥ Σ_A √(Σ_D π_D g_DA · Σ_S M_S t_S b_AS).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Floats
from muhat.workloads.residual_basis import Orbits

UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Optimum:
    """Weights c (R,) of unit sensitivity, with value ≥ the least possible ≥ floor.

    `table_weights` λ (T,) and `difference_weights` π (rows of `budget`) carry the floor.
    """

    weights: Floats
    table_weights: Floats
    difference_weights: Floats
    value: float
    floor: float

    @property
    def gap(self) -> float:
        """value/floor − 1."""
        return self.value / self.floor - 1


@dataclass(frozen=True, eq=False)
class Point:
    """ln c, and the weights of tables and differences; each sums to 1."""

    logs: Floats
    tables: Floats
    differences: Floats


class Problem:
    """The two families of sums of exponentials, and the certificate."""

    def __init__(self, orbits: Orbits, budget: Floats, p: float, power: float) -> None:
        self.orbits = orbits
        self.budget = budget
        self.p = p
        self.power = power
        count = orbits.multiplicity
        self.log_count = np.zeros_like(count) if math.isinf(p) else np.log(count)

    def balanced(self, duals: Floats) -> Point:
        """The best c when table S counts `duals`_S·M_S times its variance, π spread evenly."""
        differences = np.full(len(self.budget), 1 / len(self.budget))
        gains = self.orbits.gains(duals * self.orbits.multiplicity)
        logs = np.log(gains / (differences @ self.budget)) / (1 + self.power)
        variances = self.orbits.variances(np.exp(-logs))
        tables = duals * self.orbits.multiplicity * variances
        return Point(logs, tables / tables.sum(), differences)

    def certify(self, point: Point) -> Optimum:
        """The value of c, and the floor of λ and π, both with room for rounding."""
        logs = point.logs - point.logs.max()
        spent = float((self.budget @ np.exp(self.power * logs)).max())
        weights = np.exp(logs) / spent ** (1 / self.power)
        variances = self.orbits.variances(1 / weights)
        duals = point.tables / variances
        slack = 8 * UNIT * (len(weights) + len(variances) + 64)
        value = weighted_norm(np.sqrt(variances), self.orbits.multiplicity, self.p) * (1 + slack)
        duals = duals / self._dual_norm(duals)
        gains = self.orbits.gains(duals)
        # An entry of the budget may be a difference, right to 2^−42 of the largest in its column.
        cost = point.differences @ self.budget / point.differences.sum()
        cost = np.maximum(cost - 2.0**-42 * self.budget.max(axis=0), 0.0)
        share = 1 / (1 + self.power)
        bound = float(np.sum(gains ** (self.power * share) * cost**share))
        floor = bound ** ((1 + 1 / self.power) / 2) * (1 - slack)
        return Optimum(weights, point.tables, point.differences, value, floor)

    def _dual_norm(self, duals: Floats) -> float:
        """(Σ M_S t_S^q)^{1/q} for duals_S = M_S·t_S."""
        if self.p == 2:
            return float((duals / self.orbits.multiplicity).max())
        if math.isinf(self.p):
            return float(duals.sum())
        return weighted_norm(
            duals / self.orbits.multiplicity, self.orbits.multiplicity, self.p / (self.p - 2)
        )


def better(first: Optimum, second: Optimum) -> Optimum:
    """The smaller value with its strategy, the larger floor with its weights."""
    value = first if first.value <= second.value else second
    floor = first if first.floor >= second.floor else second
    return Optimum(
        value.weights, floor.table_weights, floor.difference_weights, value.value, floor.floor
    )


def weighted_norm(values: Floats, count: Floats, p: float) -> float:
    """(Σ count·values^p)^{1/p} without overflow."""
    largest = float(values.max(initial=0.0))
    if largest == 0 or not largest < math.inf:
        return largest
    if math.isinf(p):
        return largest
    return largest * math.pow(float(np.sum(count * (values / largest) ** p)), 1 / p)
