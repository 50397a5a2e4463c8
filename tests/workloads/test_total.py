"""The number of records, from the answers."""

from __future__ import annotations

import numpy as np
import pytest

from muhat import workloads
from muhat.workloads.total import total_weights

WORKLOADS = {
    "identity": workloads.identity((2, 3)),
    "prefix": workloads.prefix(5),
    "ranges": workloads.ranges(4),
    "marginals": workloads.marginals((2, 3, 4), order=2),
    "all records": workloads.marginals((2, 3), order=[0, 1]),
    "scaled": 3.0 * workloads.prefix(4),
    "product": workloads.kron(workloads.prefix(2), workloads.ranges(3)),
    "matrix": workloads.matrix([[1, 0, 0], [0, 1, 0], [1, 1, 2]]),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_weights_add_answers_up_to_all_records(name):
    workload = WORKLOADS[name]
    counts = np.arange(1.0, workload.shape[1] + 1)
    assert total_weights(workload) @ (workload @ counts) == pytest.approx(counts.sum())


def test_a_workload_may_not_know_the_total():
    assert total_weights(workloads.parity(4, 2)) is None
    assert total_weights(workloads.matrix([[1, -1]])) is None
