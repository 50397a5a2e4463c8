"""Beyond p = 2 every candidate for queries is compared by the same measure: the printed one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.mechanisms.queries import table_marginals
from muhat.mechanisms.queries.residual_fit import fit_residuals
from muhat.noise.laws import LAWS
from muhat.release import answer_noise
from muhat.workloads.factorize import factorize

W = mh.workloads
INF = float("inf")
WORKLOADS = {
    "prefix": W.prefix(12),
    "ranges": W.ranges(6),
    "product": W.kron(W.prefix(3), W.ranges(3)),
    "margins": W.marginals((4, 3), order=1),
    "tables": W.marginals((5, 2, 3), order=[1, 2]),
    "parities": W.parity(4, 2),
    "histogram": W.identity(9),
    "matrix": W.matrix(np.arange(40).reshape(5, 8) % 7 - 3.0),
}


@pytest.mark.parametrize("simulated", [True, False])
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("p", [3, INF])
@pytest.mark.parametrize("name", WORKLOADS)
def test_no_printed_alternative_errs_less(name, p, neighbors, simulated, monkeypatch):
    if not simulated:
        monkeypatch.setattr(answer_noise, "LARGEST_SIMULATION", 0)
    for privacy in (mh.PureDP(1.0), mh.ApproxDP(2.0, 1e-9)):
        plan = mh.plan_queries(WORKLOADS[name], privacy=privacy, p=p, neighbors=neighbors)
        assert all(plan.expected_error <= error for _, error in plan.alternatives)
        for _, error in plan.alternatives:
            assert f"{error:.4g}" in plan.describe()


@pytest.mark.parametrize("most", [0, 512])
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
def test_residuals_and_tables_compete_by_one_measure(neighbors, most, monkeypatch):
    monkeypatch.setattr(table_marginals, "MOST_SIMULATED", most)
    plan = mh.plan_queries(
        W.marginals((10, 10), order=1), privacy=mh.PureDP(1.0), p=INF, neighbors=neighbors
    )
    known = {plan.mechanism, *(name for name, _ in plan.alternatives)}
    assert {"laplace noise, residuals", "laplace noise, tables"} <= known
    mechanism = plan.parts[0].mechanism
    every = (mechanism, *mechanism.rivals)
    sizes = [one.expected_error if most else one.noise.bound(INF) for one in every]
    assert {one.expected_error_method for one in every} == {"monte carlo"} or not most
    assert sizes == sorted(sizes)
    assert [error for _, error in plan.alternatives] == sizes[1:]


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
def test_the_matrix_of_noisy_tables_has_the_scales_that_are_stated(neighbors):
    f = factorize(W.marginals((5, 2, 3), order=[1, 2]), 4, neighbors)
    query = fit_residuals(f, LAWS["laplace"], Fraction(1), f.neighbors, 1, method="tables")
    lengths = np.linalg.norm(query.decoded_by(f), axis=1)
    assert lengths == pytest.approx(query.scales, rel=1e-9)


def test_errors_are_simulated_once_for_all_releases(monkeypatch):
    plan = mh.plan_queries(W.prefix(5), privacy=mh.GDP(1.0), p=INF, neighbors="substitute")
    known = plan.certificate
    monkeypatch.setattr(answer_noise, "root_mean_square", None)
    for total in (5, 10):
        release = plan.release(np.full(5, total // 5))
        assert release.n == total
        assert release.certificate is known
