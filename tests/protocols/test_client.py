"""A device: any record in, one message out, and not a word about the record."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh
from muhat import protocols


def test_a_record_is_a_number_or_a_list_of_numbers():
    line = protocols.local_mean(domain=mh.Box([0], [1]), n=10, privacy=mh.GDP(mu=1.0))
    plane = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=10, privacy=mh.GDP(mu=1.0))
    for record in (0.5, 1, np.float32(0.5), [0.5], (0.5,), np.array([0.5]), None, float("nan")):
        assert len(line.client().randomize(record)) == line.bytes_per_user
    for record in (
        [0.1, None],
        (1e308, -1e308),
        np.array([np.inf, np.nan]),
        [10**400 // 10**390, 1],
    ):
        assert len(plane.client().randomize(record)) == plane.bytes_per_user


@pytest.mark.parametrize(
    "record",
    ["0.987654", ["0.987654x", 1], [0.987654], [0.987654] * 3, [[0.987654, 1]], [], [10**400, 1]],
)
def test_a_wrong_record_is_refused_without_a_word_of_it(record):
    protocol = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=10, privacy=mh.GDP(mu=1.0))
    with pytest.raises(mh.InvalidInput, match="record") as caught:
        protocol.client().randomize(record)
    assert "987654" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_client_needs_nothing_but_the_description():
    protocol = protocols.local_mean(
        domain={"age": (16, 90), "pay": (0, 1e6)}, n=20, privacy=mh.ZCDP(rho=1.0)
    )
    device = protocols.Protocol.from_json(protocol.to_json()).client()
    server = protocol.server()
    server.take(device.randomize_many(np.full((20, 2), 50.0)))
    assert server.users == 20
    assert server.finish().columns == ("age", "pay")


def test_what_is_missing_counts_as_the_centre_and_what_is_outside_is_clipped():
    protocol = protocols.local_mean(
        domain=mh.Box([0, 10], [2, 30]), n=4000, privacy=mh.ZCDP(rho=200.0)
    )
    server = protocol.server()
    server.take(protocol.client().randomize_many([[np.nan, 1e300]] * 4000))
    release = server.finish()
    # 6 standard errors: P < 2e-9 for each of two.
    assert (np.abs(release.value - [1, 30]) < 6 * release.standard_error).all()
