"""The best weights of the parts of a marginal workload, for every p, with a certificate.

With c = exp(y) the squared error times the squared sensitivity is a product of two norms of sums
of exponentials of y, so its logarithm

    (2/p)·ln Σ_S M_S·v_S^{p/2} + max_D ln Σ_A g_DA·e^{y_A},    v_S = Σ_A b_AS·e^{−y_A}

is convex: S runs over orbits of tables, D over the ways in which neighbours differ (one way
under add/remove). A Newton method follows the optimality conditions together with the weights λ
of the tables and π of the differences, and 2/p, or what smooths a maximum, goes down to its
place on the way. Whatever it finds certifies itself (`residual_certificate`).
"""

from __future__ import annotations

import numpy as np

from muhat._arrays import Floats
from muhat.workloads.residual_basis import Orbits
from muhat.workloads.residual_certificate import Optimum, Problem, better
from muhat.workloads.residual_newton import newton

LARGEST_SYSTEM = 3000
"""Parts up to which Newton's equations are solved; a simple iteration takes over beyond."""

SIMPLE_STEPS = 2000


def best_weights(
    orbits: Orbits, budget: Floats, p: float, tol: float, *, power: float = 1.0
) -> Optimum:
    """Minimise ‖standard deviations‖_p over c ≥ 0 with max_D Σ_A budget_DA·c_A^power ≤ 1.

    `budget` (number of differences, R) is ≥ 0 with a positive entry in every column. For
    power = ½ it is the ℓ₁ length of a column, and c stands for the squared multipliers.
    """
    problem = Problem(orbits, budget, p, power)
    if p == 2 and len(budget) == 1:
        return problem.certify(problem.balanced(np.ones(len(orbits.multiplicity))))
    if len(orbits.parts) > LARGEST_SYSTEM or len(orbits.multiplicity) > 2 * LARGEST_SYSTEM:
        return _simple(problem, tol)
    return newton(problem, tol)


def _simple(problem: Problem, tol: float) -> Optimum:
    """ln t moves a part of its way towards (p/2 − 1)·ln v, which is where it must end.

    v has elasticities between −½ and 0 in t, so with the step 2/(2 + (p/2 − 1)/2) every error
    shrinks; slowly for p = ∞, where the gap says how far it came.
    """
    goal = min(problem.p, 1e6) / 2 - 1
    step = 2 / (2 + goal / 2)
    duals = np.ones(len(problem.orbits.multiplicity))
    if len(problem.budget) > 1:
        raise AssertionError("several differences are solved by Newton's method alone")
    best = found = problem.certify(problem.balanced(duals))
    for _ in range(SIMPLE_STEPS):
        if best.gap <= tol:
            break
        variances = problem.orbits.variances(1 / found.weights)
        logs = (1 - step) * np.log(duals) + step * goal * np.log(variances)
        duals = np.exp(logs - logs.max())
        found = problem.certify(problem.balanced(duals))
        best = better(best, found)
    return best
