"""The paper's three rounds in the local model: as printed, and with the best parts there are."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.data.rotation import Rotation
from muhat.protocols import Protocol
from muhat.protocols.means.local_chain import local_chain
from muhat.protocols.means.local_three_rounds import (
    LocalThreeRounds,
    local_three_rounds,
    searched,
)
from muhat.protocols.randomizers.randomizer import Received

ERRORS = 5.6
"""Standard errors: 2e-8 a comparison, below 1e-6 for all of this file."""

LOUD = mh.ZCDP(rho=50.0)


def run(protocol: Protocol, records: np.ndarray, seed: int = 0):
    """All rounds with seeded messages: the rounds, the last group and the release."""
    generator = np.random.default_rng(seed)
    words = lambda count: generator.integers(0, 1 << 64, count, np.uint64)  # noqa: E731
    rounds, asked = [], 0
    while isinstance(protocol, Protocol):
        rounds.append(protocol)
        group = records[asked : asked + protocol.users]
        asked += protocol.users
        nonces = generator.integers(0, 256, (len(group), 16), np.uint8)
        payloads = protocol.randomizer.randomize(group, nonces, words)
        protocol = protocol.estimator.after(protocol, Received(nonces, payloads))
    assert asked == len(records)
    return rounds, group, protocol


def seeded(seed: int = 7):
    generator = np.random.default_rng(seed)
    return lambda count: generator.integers(0, 1 << 64, count, np.uint64)


def skewed(n: int, dim: int) -> np.ndarray:
    return 4 + np.random.default_rng(3).exponential(size=(n, dim))


@pytest.mark.parametrize("faithful", [False, True])
@pytest.mark.parametrize("dim", [1, 3, 4])
def test_loud_rounds_find_the_medians_and_the_radius(dim, faithful):
    """Seeded; the centre as close as counts allow, which are one bit as printed; the radius too."""
    n = 24_000
    records = skewed(n, dim)
    protocol = local_three_rounds(
        mh.Reals(dim, 20.0), n=n, privacy=LOUD, faithful=faithful, words=seeded()
    )
    rounds, group, release = run(protocol, records)
    assert [each.users for each in rounds] == [6000, 4500, 13500]
    rotation = Rotation(np.array(protocol.estimator.signs, float))
    turned = np.array([rotation.forward(row) for row in records[:6000]])
    center = rotation.back(np.median(turned, axis=0))
    assert np.linalg.norm(release.domain.center - center) < (1.0 if faithful else 0.15)
    radii = np.linalg.norm(group - release.domain.center, axis=1)
    outside = float(np.mean(radii > release.domain.radius))
    assert abs(outside - protocol.estimator.outside) < (0.1 if faithful else 0.02)
    assert protocol.estimator.outside < 0.03


@pytest.mark.parametrize("faithful", [False, True])
def test_the_value_is_the_clipped_mean_without_bias(faithful):
    n = 12_000
    promise = mh.ZCDP(rho=0.5)
    protocol = local_three_rounds(
        mh.Reals(2, 20.0), n=n, privacy=promise, faithful=faithful, words=seeded()
    )
    _, group, release = run(protocol, skewed(n, 2))
    away = group - release.domain.center
    lengths = np.linalg.norm(away, axis=1)
    clipped = away * np.minimum(1, release.domain.radius / lengths)[:, None]
    off = np.abs(release.value - release.domain.center - clipped.mean(axis=0))
    assert (off <= ERRORS * release.standard_error).all()
    assert (off + 20 * release.standard_error > ERRORS * release.standard_error).all()
    assert release.mechanism == "local-three-rounds"
    assert release.privacy == promise


def test_the_printed_rank_is_kept_and_the_other_suits_those_left_for_the_mean():
    given = {"n": 100_000, "privacy": mh.ZCDP(rho=0.01)}
    printed = local_three_rounds(mh.Reals(8, 50.0), faithful=True, **given).estimator
    assert printed.outside == pytest.approx(math.sqrt(2 * 8 / (0.01 * 100_000)))
    mended = local_three_rounds(mh.Reals(8, 50.0), **given).estimator
    assert mended.outside == pytest.approx(math.sqrt(2 * 8 / (0.01 * mended.groups[2])), rel=1e-6)
    assert local_three_rounds(mh.Reals(8, 50.0), n=100, privacy=LOUD).estimator.outside <= 0.5


def test_the_paper_s_grids_are_whole_numbers_and_reach_far_enough():
    estimator = local_three_rounds(
        mh.Reals(4, 1024.0), n=10_000, privacy=mh.ZCDP(rho=1.0), faithful=True
    ).estimator
    assert (estimator.median_grid.lower, estimator.median_grid.upper) == (-4096.0, 4096.0)
    assert estimator.median_grid.step == 1.0
    assert (estimator.radius_grid.upper, estimator.radius_grid.step) == (4096.0, 1.0)
    large = local_three_rounds(
        mh.Reals(100, 1.0), n=100_000, privacy=mh.ZCDP(rho=1.0), faithful=True
    )
    assert large.randomizer.record_dim == 100


def test_the_search_of_the_paper_finds_cells_of_shares():
    prefix = np.array([0.0, 0.1, 0.4, 0.5, 0.5, 1.0])
    assert searched(prefix, 0.0) == 0
    assert searched(prefix, 0.45) == 2
    assert searched(prefix, 0.5) == 4
    assert searched(prefix, 1.0) == 4


@pytest.mark.slow
def test_printed_medians_have_no_signal_where_the_chain_has_and_good_counts_help():
    """d = 8, n = 10⁵, R = 20√d; ε = 1, δ = 10⁻⁹ for the paper, converted from ρ-zCDP. Seeded."""
    n, dim = 100_000, 8
    records = 5 + np.random.default_rng(2).normal(size=(n, dim))
    domain = mh.Reals(dim, 20.0 * dim**0.5)
    given = {"n": n, "words": seeded()}
    quiet, pure = mh.ZCDP(rho=0.0115), mh.PureDP(epsilon=1.0)
    errors = {}
    for name, protocol in (
        ("printed", local_three_rounds(domain, privacy=quiet, faithful=True, **given)),
        ("mended", local_three_rounds(domain, privacy=quiet, **given)),
        ("pure", local_three_rounds(domain, privacy=pure, **given)),
        ("chain", local_chain(domain, n=n, privacy=pure)),
    ):
        release = run(protocol, records)[2]
        errors[name] = np.linalg.norm(release.value - records.mean(axis=0))
    assert errors["printed"] > 5.0
    assert errors["pure"] < 0.6
    assert errors["chain"] < 0.2


def test_real_messages_through_json_give_a_release():
    n = 4_000
    protocol = local_three_rounds(
        mh.Reals(2, 30.0), n=n, privacy=mh.ApproxDP(epsilon=4, delta=1e-6), columns=["a", "b"]
    )
    shown = []
    release = protocols.simulate(protocol, skewed(n, 2), watch=shown.append)
    assert len(shown) == 3
    for each in shown:
        assert Protocol.from_json(each.to_json()).to_json() == each.to_json()
    assert release.columns == ("a", "b")
    assert any("asked last" in sentence for sentence in release.assumptions)
    assert mh.Release.from_json(release.to_json()).value.tolist() == release.value.tolist()


@pytest.mark.parametrize(
    "arguments",
    [
        {"domain": mh.Reals(2)},
        {"n": 5},
        {"privacy": mh.PureDP(epsilon=1.0), "faithful": True},
        {"privacy": mh.ZCDP(rho=1e-6), "faithful": True},
        {"weights": [1.0, 3.0]},
        {"columns": ["a"]},
        {"faithful": "very"},
    ],
)
def test_wrong_arguments_are_refused(arguments):
    usual = {"domain": mh.Reals(2, 100.0), "n": 10_000, "privacy": mh.ZCDP(rho=0.5)}
    given = {**usual, **arguments}
    with pytest.raises(mh.InvalidInput):
        local_three_rounds(given.pop("domain"), **given)


def test_descriptions_that_contradict_themselves_are_refused():
    n = 4_000
    protocol = local_three_rounds(mh.Reals(2, 30.0), n=n, privacy=LOUD)
    rounds, _, _ = run(protocol, skewed(n, 2))
    fields = json.loads(rounds[0].to_json())
    for change in ({"signs": [1, 2]}, {"signs": [1]}, {"faithful": 1}, {"n": "many"}):
        wrong = fields | {"estimator": fields["estimator"] | change}
        with pytest.raises(mh.InvalidInput):
            Protocol.from_json(json.dumps(wrong))
    received = Received(np.zeros((3, 16), np.uint8), np.zeros((3, 1), np.uint8))
    wrong = json.loads(rounds[1].to_json()) | {
        "randomizer": json.loads(rounds[2].to_json())["randomizer"]
    }
    with pytest.raises(mh.InvalidInput):
        rounds[1].estimator.after(Protocol.from_json(json.dumps(wrong)), received)


def test_the_estimator_is_read_as_it_was_written():
    made = LocalThreeRounds(mh.Reals(3, 9.0), mh.ZCDP(rho=0.5), 5000, (1, -1, 1), True)
    assert LocalThreeRounds.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    assert "as printed" in made.describe()
