"""Strategies for replaced records that may be in no cell."""

from __future__ import annotations

import numpy as np
import pytest

from muhat import workloads
from muhat.workloads.absent import factorize_with_absent
from muhat.workloads.factorize import factorize

WORKLOADS = {
    "prefix": workloads.prefix(9),
    "ranges": workloads.ranges(6),
    "identity": workloads.identity((2, 3)),
    "marginals": workloads.marginals((2, 3), order=1),
    "matrix": workloads.matrix(np.random.default_rng(0).normal(size=(4, 7))),
}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("p", [2, 4, float("inf")])
def test_no_record_that_moves_comes_or_goes_moves_it_by_more_than_1(name, p):
    workload = WORKLOADS[name]
    found = factorize_with_absent(workload, p, 1e-6)
    assert found.decoder @ found.strategy == pytest.approx(workload.dense(), abs=1e-6)
    columns = np.hstack([found.strategy, np.zeros((len(found.strategy), 1))])
    apart = np.linalg.norm(columns[:, :, None] - columns[:, None, :], axis=0)
    assert apart.max() <= 1 + 1e-9
    assert found.standard_deviations == pytest.approx(
        np.linalg.norm(found.decoder, axis=1), rel=1e-6
    )


@pytest.mark.parametrize("name", WORKLOADS)
def test_it_lies_between_the_two_relations(name):
    """At least what replaced records take, at most twice what those that come and go take."""
    workload = WORKLOADS[name]
    value = factorize_with_absent(workload, 2, 1e-6).value
    assert value >= factorize(workload, neighbors="substitute").floor
    assert value <= 2 * factorize(workload, neighbors="add-remove").value


def test_what_takes_too_long_is_left_alone():
    assert factorize_with_absent(workloads.prefix(1000), 2, 1e-6) is None
