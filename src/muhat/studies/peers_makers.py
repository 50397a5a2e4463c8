"""How each library is asked for the mean of records in [0, 1]^d; None where it cannot be.

Every call gives a fresh release of the column means, of shape (d,). What is public (the plan, the
chain of transformations) is made once.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import muhat as mh
from muhat._arrays import Floats
from muhat.privacy import Privacy

Release = Callable[[Floats], Floats]


def muhat_means(n: int, dim: int, privacy: Privacy) -> Release:
    """The plan's own choice of mechanism."""
    plan = mh.plan_mean(domain=mh.Box([0.0] * dim, [1.0] * dim), n=n, privacy=privacy)
    return lambda records: np.asarray(plan.release(records).value)


def opendp_means(n: int, dim: int, privacy: Privacy) -> Release | None:
    """One clamped mean a column, by equal parts of the promise; two records differ for one."""
    dp = _library("opendp.prelude")
    if dp is None:
        return None
    dp.enable_features("contrib")
    column = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=n), dp.symmetric_distance()
    total = float(privacy.amounts[0])
    noise = dp.m.then_gaussian if privacy.admits_normal else dp.m.then_laplace
    mean = column >> dp.t.then_clamp((0.0, 1.0)) >> dp.t.then_mean()

    def chain(scale: float) -> Any:
        return mean >> noise(scale)

    part = dp.binary_search_chain(chain, d_in=2, d_out=total / dim, bounds=(1e-9, 1e6))
    return lambda records: np.array([part(np.ascontiguousarray(each)) for each in records.T])


def diffprivlib_means(n: int, dim: int, privacy: Privacy) -> Release | None:
    """Its mean over the rows; it has Laplace noise only."""
    tools = _library("diffprivlib.tools")
    if tools is None or privacy.implied_epsilon is None:
        return None
    epsilon, accounts = privacy.implied_epsilon, _library("diffprivlib")

    def release(records: Floats) -> Floats:
        accountant = accounts.BudgetAccountant()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = tools.mean(
                records, epsilon=epsilon, bounds=(0.0, 1.0), axis=0, accountant=accountant
            )
        return np.asarray(found, dtype=np.float64).reshape(dim)

    return release


MAKERS: dict[str, Callable[[int, int, Privacy], Release | None]] = {
    "muhat": muhat_means,
    "opendp": opendp_means,
    "diffprivlib": diffprivlib_means,
}
"""By the names of their distributions."""

REPORTED = {
    "muhat": "value, standard error, interval, noise law, proved least error, cost, assumptions",
    "opendp": "value; privacy map and accuracy of the noise on request",
    "diffprivlib": "value; spent budget in an accountant",
}
"""What comes with a value, from the libraries' documentation."""


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
