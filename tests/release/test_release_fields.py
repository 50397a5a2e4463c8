"""All releases write and read what they share in one way."""

from __future__ import annotations

import json

import numpy as np
import pytest

import muhat as mh
from muhat.release.fields import account_fields, read_account

RHO = mh.ZCDP(rho=0.5)
X = np.arange(100.0)
RELEASES = {
    "mean": mh.mean(X, domain=mh.Box([0], [99]), privacy=RHO),
    "quantile": mh.quantile(X, 0.5, lower=0, upper=99, privacy=RHO),
    "queries": mh.plan_queries(mh.workloads.prefix(4), privacy=RHO).release(np.ones(4, int)),
}


@pytest.mark.parametrize("name", RELEASES)
def test_what_is_shared_is_read_as_it_was_written(name):
    release = RELEASES[name]
    fields = json.loads(release.to_json())
    certificate = getattr(release, "certificate", None)
    assert account_fields(release, certificate).items() <= fields.items()
    read = read_account(fields)
    assert set(read) == {
        *("privacy", "neighbors", "n", "contributions", "assumptions"),
        *("plan_digest", "ledger_head"),
    }
    assert all(getattr(release, key) == value for key, value in read.items())
    assert set(fields["interval"]) == {"confidence", "target", "lower", "upper"}
    assert type(release).from_json(release.to_json()).to_json() == release.to_json()


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize(
    "change", [{"n": -3}, {"n": 2.5}, {"contributions": 0}, {"neighbors": "x"}, {"privacy": {}}]
)
def test_a_promise_that_cannot_be_is_refused(name, change):
    release = RELEASES[name]
    fields = json.loads(release.to_json()) | change
    with pytest.raises(mh.InvalidInput):
        type(release).from_json(json.dumps(fields))
