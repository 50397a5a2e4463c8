"""All releases write and read what they share in one way."""

from __future__ import annotations

import json

import numpy as np
import pytest

import muhat as mh

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
    certificate = release.certificate
    assert fields["certificate"] == (None if certificate is None else certificate.to_dict())
    shared = {
        "mechanism": release.mechanism,
        "privacy": {"kind": "zcdp", "rho": 0.5},
        "neighbors": release.neighbors.value,
        "n": release.n,
        "contributions": 1,
        "cost": {"kind": "zcdp", "rho": 0.5},
        "assumptions": list(release.assumptions),
        "cautions": [],
        "plan_digest": release.plan_digest,
        "ledger_head": None,
    }
    assert shared.items() <= fields.items()
    again = mh.Release.from_json(release.to_json())
    for key in ("privacy", "neighbors", "n", "contributions", "assumptions"):
        assert getattr(again, key) == getattr(release, key)
    assert (again.plan_digest, again.ledger_head) == (release.plan_digest, release.ledger_head)
    assert set(fields["interval"]) == {"confidence", "target", "lower", "upper"}
    assert again.to_json() == release.to_json()


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize(
    "change", [{"n": -3}, {"n": 2.5}, {"contributions": 0}, {"neighbors": "x"}, {"privacy": {}}]
)
def test_a_promise_that_cannot_be_is_refused(name, change):
    release = RELEASES[name]
    fields = json.loads(release.to_json()) | change
    with pytest.raises(mh.InvalidInput):
        mh.Release.from_json(json.dumps(fields))
