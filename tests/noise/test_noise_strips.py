"""Every sieve takes the reference's decision from the same words; the table is certified."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import noise_reference as reference
import numpy as np
import pytest
from noise_reference import OPEN, REJECT, Replay

from muhat.noise import exact, strips
from muhat.noise.density import LAPLACE, NORMAL, Density
from muhat.noise.entropy import system_words

LAWS = {"normal": NORMAL, "laplace": LAPLACE}
ONES = 2**64 - 1
ALTERNATING = 0xAAAAAAAAAAAAAAAA

both_laws = pytest.mark.parametrize("law", LAWS)


def attempt(density: Density, words: list[int]) -> int | str:
    """One trial of the library, in the words of the reference."""
    out = np.zeros(1, np.int64)
    rejected, settled = strips.attempt(
        density, np.array(words[:1], np.uint64), Replay(words[1:]), out
    )
    if rejected.size:
        return REJECT
    return settled[0].floor if settled else int(out[0])


def settle(density: Density, words: list[int]) -> int | str:
    """One trial of the big-integer path."""
    sample = exact.settle(density, words[0], words[1], Replay(words[2:]))
    return REJECT if sample is None else sample.floor


@pytest.fixture
def no_sieves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that decides nothing: every trial goes to the big integers."""
    nothing = strips.Table(
        thresholds=np.array([0, 1], np.uint64),
        heights=np.array([1.0]),
        starts=np.full(2**15, strips.UNDECIDED),
    )
    monkeypatch.setattr(strips, "table", lambda density: nothing)


def random_trials(count: int) -> Iterator[list[int]]:
    for _ in range(count):
        yield [secrets.randbits(64) for _ in range(8)]


def wedge_trials(law: str, count: int) -> Iterator[list[int]]:
    """Trials where x matters: u between S_k + w_{k+1} and S_k + w_k, strips far out included."""
    for _ in range(count):
        k = secrets.randbelow(400 if law == "normal" else 1500)
        low = reference.boundary(law, k, Fraction(1), 78)
        high = reference.threshold(law, k + 1, 78)
        u = low + secrets.randbelow(high - low)
        words = reference.words_of(u, 78, secrets.randbits(49), negative=secrets.randbits(1) == 1)
        yield words + [secrets.randbits(64) for _ in range(6)]


def edge_trials(law: str) -> Iterator[list[int]]:
    """Trials on the edges: of a strip, of the acceptance region, of the words themselves."""
    further = [
        [0] * 6,
        [ONES] * 5 + [0],
        [ALTERNATING] * 6,
        [secrets.randbits(64) for _ in range(6)],
    ]
    for first in (0, ONES, 1 << 63, ONES >> 1, ALTERNATING, ONES // 3, 1, (1 << 63) - 1 << 49):
        for second in (0, ONES, ALTERNATING):
            for more in further:
                yield [first % 2**64, second, *more]
    for k in (0, 1, 2, 63, 64, 200, 300, 400, 455, 460, 500, 700):
        for x in (0, 1, 2**48, 2**49 - 1):
            place = Fraction(x, 2**49)
            for bits in (14, 64, 78):
                edges = (
                    reference.threshold(law, k, bits),
                    reference.boundary(law, k, place, bits),
                    reference.boundary(law, k, Fraction(1), bits),
                )
                for edge in edges:
                    for u in (edge - 1, edge, edge + 1):
                        if 0 <= u < 2**bits:
                            words = reference.words_of(u, bits, x, negative=(k + x) % 2 == 1)
                            yield words + further[(u + k) % len(further)]


@both_laws
def test_every_decision_is_the_references(law: str) -> None:
    accepted = rejected = 0
    for words in [*random_trials(1500), *wedge_trials(law, 1500)]:
        expected = reference.trial(law, words)
        assert expected != OPEN
        assert attempt(LAWS[law], words) == expected
        accepted += expected != REJECT
        rejected += expected == REJECT
    assert accepted > 1500
    assert rejected > 400


@both_laws
def test_adversarial_words_get_the_references_decision(law: str) -> None:
    decided = 0
    for words in edge_trials(law):
        expected = reference.trial(law, words)
        if expected != OPEN:
            assert attempt(LAWS[law], words) == expected
            assert settle(LAWS[law], words) == expected
            decided += 1
    assert decided > 900


@both_laws
@pytest.mark.usefixtures("no_sieves")
def test_the_big_integers_alone_take_the_references_decisions(law: str) -> None:
    for words in [*random_trials(300), *wedge_trials(law, 300)]:
        assert attempt(LAWS[law], words) == reference.trial(law, words)


@both_laws
def test_the_big_integers_agree_with_the_sieves(law: str) -> None:
    for words in [*random_trials(1500), *wedge_trials(law, 1500)]:
        assert settle(LAWS[law], words) == attempt(LAWS[law], words)


@both_laws
def test_a_wrong_table_is_caught_by_the_reference(
    law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = strips.table(LAWS[law])
    wrong = strips.Table(honest.thresholds, honest.heights * 1.02, honest.starts)
    monkeypatch.setattr(strips, "table", lambda density: wrong)
    disagreements = sum(
        attempt(LAWS[law], words) != reference.trial(law, words) for words in wedge_trials(law, 500)
    )
    assert disagreements > 0


@both_laws
def test_a_batch_decides_as_its_trials_do_one_by_one(law: str) -> None:
    first = system_words(20_000)
    second = int(system_words(1)[0])
    out = np.zeros(first.size, np.int64)
    rejected, settled = strips.attempt(
        LAWS[law], first, lambda count: np.full(count, second, np.uint64), out
    )
    lost = set(rejected.tolist())
    for index in {*range(0, first.size, 20), *lost} - set(settled):
        alone = attempt(LAWS[law], [int(first[index]), second])
        assert alone == (REJECT if index in lost else int(out[index]))


@both_laws
def test_the_sieves_leave_next_to_nothing_to_the_big_integers(law: str) -> None:
    # The margin leaves 2^−19 of the trials, so 6 or more in 10^5 have probability below 1e-7.
    assert len(strips.draw(LAWS[law], 100_000, system_words).settled) < 6
    undecided = np.mean(strips.table(LAWS[law]).starts == strips.UNDECIDED)
    assert undecided < 0.05


@both_laws
def test_rejected_trials_are_drawn_again_until_every_place_is_filled(law: str) -> None:
    top = reference.threshold(law, 1, 78) - 2**40
    refused = reference.words_of(top, 78, 2**49 - 1)
    assert reference.trial(law, refused) == REJECT
    taken = reference.words_of(0, 78, 12345)
    first, second = zip(refused, refused, strict=True)
    words = Replay([*first, *second, *first, *second, taken[0], taken[0] + 1])
    assert strips.draw(LAWS[law], 2, words).floors.tolist() == [12345, 12346]
    assert not words.words


@both_laws
def test_a_sample_settled_in_a_second_trial_keeps_its_place(law: str) -> None:
    taken = reference.words_of(0, 78, 12345)
    refused = reference.words_of(reference.threshold(law, 1, 78) - 2**40, 78, 2**49 - 1)
    edge = reference.words_of(
        reference.boundary(law, 70, Fraction(2**48, 2**49), 78) - 1, 78, 2**48
    )
    words = Replay([taken[0], taken[0], refused[0], refused[1], *edge, 0, 77, 0, 0])
    result = strips.draw(LAWS[law], 3, words)
    floor = 70 * 2**49 + 2**48
    assert result.floors.tolist() == [12345, 12345, floor]
    assert {index: sample.floor for index, sample in result.settled.items()} == {2: floor}


@both_laws
def test_many_blocks_give_as_many_values_as_asked(law: str) -> None:
    for size in (0, 1, strips.BLOCK - 1, strips.BLOCK, strips.BLOCK + 1, 3 * strips.BLOCK + 7):
        assert strips.draw(LAWS[law], size, system_words).floors.shape == (size,)


@both_laws
def test_thresholds_are_the_certified_floors(law: str) -> None:
    thresholds = strips.table(LAWS[law]).thresholds.tolist()
    assert thresholds == [reference.threshold(law, k, 64) for k in range(len(thresholds))]
    assert 2**64 - 2**24 < thresholds[-1] < 2**64


@both_laws
def test_a_cell_is_given_to_a_strip_only_if_it_lies_inside(law: str) -> None:
    starts = strips.table(LAWS[law]).starts
    assert starts.size == 2**15
    for cell, start in enumerate(starts.tolist()):
        if start == strips.UNDECIDED:
            continue
        negative, u = divmod(cell, 2**14)
        k = ~(start >> 49) if negative else start >> 49
        assert start == (~k if negative else k) * 2**49
        assert u << 64 >= reference.threshold(law, k, 78) + (k > 0)
        assert (u + 1) << 64 <= reference.boundary(law, k, Fraction(1), 78)


def test_a_cell_that_touches_an_edge_is_left_undecided() -> None:
    width = 2**50
    edges = np.array([0, 100, 200, 290, 370, 440], np.uint64) * np.uint64(width)
    starts = strips._starts(edges)
    given = {cell: start >> 49 for cell, start in enumerate(starts.tolist()) if start >= 0}
    # Strip k ends where the next one's weight does, less one unit for the rounding.
    first, second, third = range(99), range(101, 189), range(201, 279)
    strips_of = {cell: k for k, cells in enumerate((first, second, third)) for cell in cells}
    strips_of |= dict.fromkeys(range(291, 359), 3)
    assert given == strips_of


@both_laws
def test_the_polynomial_is_within_its_error(law: str) -> None:
    strip = np.arange(strips.table(LAWS[law]).heights.size)
    for within in (0.0, 0.25, 0.5, 0.999, 1.0):
        rise = LAWS[law].rise(strip, np.full(strip.size, within))
        assert rise.max() <= 0.25
        for k, y, value in zip(strip.tolist(), rise, strips.falling_exponential(rise), strict=True):
            place = (k + Fraction(within)) / 64
            exact_rise = reference.mpf(
                (place**2 - Fraction(k, 64) ** 2) / 2
                if law == "normal"
                else place - Fraction(k, 64)
            )
            assert abs(y - exact_rise) < 2**-50
            assert abs(value - mpmath.exp(-exact_rise)) < 2**-21


@both_laws
def test_the_table_is_refused_when_its_precision_does_not_certify_it(
    law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "PRECISION", 64)
    with pytest.raises(ArithmeticError, match="precision"):
        strips.table.__wrapped__(LAWS[law])


def test_the_tables_cannot_be_written_to() -> None:
    for density in LAWS.values():
        table = strips.table(density)
        for array in (table.thresholds, table.heights, table.starts):
            assert not array.flags.writeable
