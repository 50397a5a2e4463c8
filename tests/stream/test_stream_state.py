"""Saved counters: the same answers afterwards, for the owner's eyes, and used once."""

from __future__ import annotations

import json
import math
import os
import shutil
import stat
import subprocess
import sys

import numpy as np
import pytest

import muhat as mh
from muhat.stream import PrefixCounter
from muhat.stream.engines import KeptNoise
from muhat.stream.state import State

PROMISE = mh.ZCDP(rho=0.5)


def started(pushes: int = 3) -> PrefixCounter:
    counter = mh.stream.prefix_counter(20, PROMISE, lower=-1, upper=1)
    counter.push_many([0.5] * pushes)
    return counter


def test_answers_go_on_as_if_nothing_had_happened(tmp_path):
    counter = started()
    engine = KeptNoise(counter._engine.noise[3:], list(counter._engine.sums))
    twin = PrefixCounter(counter._plan, engine, 3, list(counter._last), None)
    counter.save(tmp_path / "state")
    again = mh.stream.restore(tmp_path / "state")
    assert again.pushed == 3
    assert again.value == twin.value
    values = np.linspace(-2, 2, 17)
    assert [again.push(value) for value in values] == [twin.push(value) for value in values]
    with pytest.raises(mh.InvalidInput, match="horizon"):
        again.push(0)


def test_vectors_and_twice_saved_counters_go_on_too(tmp_path):
    counter = mh.stream.prefix_counter(10, PROMISE, lower=[0, 0], upper=[1, 2])
    first = counter.push([1, 1])
    noise = counter._engine.noise.copy()
    counter.save(tmp_path / "a")
    counter = mh.stream.restore(tmp_path / "a")
    assert (counter.value == first).all()
    counter.push_many(np.ones((4, 2)))
    counter.save(tmp_path / "b")
    counter = mh.stream.restore(tmp_path / "b")
    assert counter.pushed == 5
    assert (counter._engine.noise == noise[5:]).all()


def test_a_few_buffers_are_saved_and_restored(tmp_path):
    counter = mh.stream.prefix_counter(300, PROMISE, memory="few-buffers")
    counter.push_many(np.ones(100))
    state, value = counter._engine.saved()[0], counter.value
    counter.save(tmp_path / "state")
    assert (tmp_path / "state").stat().st_size < 5000
    again = mh.stream.restore(tmp_path / "state")
    assert again._engine.saved()[0] == state
    assert again.value == value
    again.push_many(np.ones(200))
    assert abs(again.value - 300) < 7 * again.standard_error


def test_the_file_is_for_the_owner_alone(tmp_path):
    os.umask(0)
    try:
        started().save(tmp_path / "state")
    finally:
        os.umask(0o022)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    os.chmod(tmp_path / "state", 0o644)
    with pytest.raises(mh.InvalidInput, match="chmod 600"):
        mh.stream.restore(tmp_path / "state")


def test_saving_hands_the_counter_over(tmp_path):
    counter = started()
    value = counter.value
    counter.save(tmp_path / "state")
    for use in (lambda: counter.push(1), lambda: counter.push_many([1]), lambda: counter.save("x")):
        with pytest.raises(mh.InvalidInput, match="handed over"):
            use()
    assert counter.value == value


def test_a_second_claim_is_refused_even_of_a_copy(tmp_path):
    started().save(tmp_path / "state")
    shutil.copy(tmp_path / "state", tmp_path / "copy")
    mh.stream.restore(tmp_path / "state")
    with pytest.raises(mh.InvalidInput, match="restored already"):
        mh.stream.restore(tmp_path / "copy")
    with pytest.raises(mh.InvalidInput, match="cannot be read"):
        mh.stream.restore(tmp_path / "state")


def test_an_ordinary_copy_is_restored_once_wherever_it_was_put(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    (tmp_path / "elsewhere").mkdir()
    started().save(tmp_path / "state")
    shutil.copy(tmp_path / "state", tmp_path / "elsewhere" / "copy")
    mh.stream.restore(tmp_path / "state")
    with pytest.raises(mh.InvalidInput, match="restored already"):
        mh.stream.restore(tmp_path / "elsewhere" / "copy")
    claims = tmp_path / "home" / "muhat" / "claims"
    assert len(list(claims.iterdir())) == 1
    assert stat.S_IMODE(claims.stat().st_mode) == 0o700


def test_a_user_without_a_place_for_claims_is_told_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    started().save(tmp_path / "state")
    with pytest.raises(mh.InvalidInput, match="claims=…"):
        mh.stream.restore(tmp_path / "state")
    mh.stream.restore(tmp_path / "state", claims=tmp_path).push(1)


def test_one_folder_of_claims_sees_copies_anywhere(tmp_path):
    (tmp_path / "claims").mkdir()
    (tmp_path / "elsewhere").mkdir()
    started().save(tmp_path / "state")
    shutil.copy(tmp_path / "state", tmp_path / "elsewhere" / "copy")
    mh.stream.restore(tmp_path / "state", claims=tmp_path / "claims")
    with pytest.raises(mh.InvalidInput, match="restored already"):
        mh.stream.restore(tmp_path / "elsewhere" / "copy", claims=tmp_path / "claims")
    with pytest.raises(mh.InvalidInput, match="cannot be made"):
        mh.stream.restore(tmp_path / "elsewhere" / "copy", claims=tmp_path / "nowhere")


def test_of_racing_processes_one_wins(tmp_path):
    started().save(tmp_path / "state")
    (tmp_path / "claims").mkdir()
    copies = [tmp_path / f"copy{k}" for k in range(4)]
    for path in copies:
        shutil.copy(tmp_path / "state", path)
    script = (
        "import sys, muhat as mh\n"
        "try: mh.stream.restore(sys.argv[1], claims=sys.argv[2]); print('won')\n"
        "except mh.InvalidInput: print('lost')"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(path), str(tmp_path / "claims")],
            stdout=subprocess.PIPE,
            text=True,
        )
        for path in copies
    ]
    outcomes = [process.communicate()[0].strip() for process in running]
    assert sorted(outcomes) == ["lost", "lost", "lost", "won"]


def test_an_existing_file_is_never_replaced_and_the_counter_goes_on(tmp_path):
    (tmp_path / "state").write_text("mine")
    counter = started()
    with pytest.raises(mh.InvalidInput, match="exists already"):
        counter.save(tmp_path / "state")
    with pytest.raises(mh.InvalidInput, match="cannot be written"):
        counter.save(tmp_path / "no" / "folder")
    with pytest.raises(mh.InvalidInput, match="path"):
        counter.save(3)
    assert (tmp_path / "state").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    counter.push(1)


def test_damaged_files_are_refused_without_a_word_of_their_content(tmp_path):
    counter = started()
    counter.save(tmp_path / "state")
    good = (tmp_path / "state").read_bytes()
    damaged = [
        b"",
        b"secret 4711",
        good[:-1],
        good[:40],
        good + b"x",
        b"x" + good[1:],
        *(good[:k] + bytes([good[k] ^ 1]) + good[k + 1 :] for k in range(0, len(good), 37)),
    ]
    for number, content in enumerate(damaged):
        path = tmp_path / f"damaged{number}"
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(mh.InvalidInput) as caught:
            mh.stream.restore(path)
        assert str(caught.value) == "the file is not a saved counter, or it is damaged."
        assert caught.value.__suppress_context__
    with pytest.raises(mh.InvalidInput, match=r"not a file|cannot be read"):
        mh.stream.restore(tmp_path)


def test_a_consistent_file_with_wrong_fields_is_refused():
    import hashlib

    counter = started()
    state = State(counter._plan, counter._engine, 3, [2], None)
    content = state.to_bytes("0" * 32)
    assert State.from_bytes(content).pushed == 3
    length = int.from_bytes(content[15:23], "little")
    header = json.loads(content[23 : 23 + length])
    for change in (
        {"schema": "other"},
        {"pushed": 4},
        {"pushed": -1},
        {"engine": [1, 2]},
        {"id": "../../etc"},
        {"id": 5},
        {"plan": None},
        {"plan": {}},
    ):
        text = json.dumps({**header, **change}).encode()
        body = content[:15] + len(text).to_bytes(8, "little") + text + content[23 + length : -32]
        with pytest.raises(mh.InvalidInput, match="not a saved counter"):
            State.from_bytes(body + hashlib.sha256(body).digest())


EVERY_NOISE = {
    "optimum": (PROMISE, {}),
    "largest error": (PROMISE, {"p": math.inf}),
    "window": (PROMISE, {"window": 3}),
    "decay": (PROMISE, {"decay": 0.5}),
    "apart": (PROMISE, {"contributions": 3, "apart": 4}),
    "replaced": (PROMISE, {"neighbors": "substitute"}),
    "square root": (PROMISE, {"horizon": 1030}),
    "few buffers": (PROMISE, {"memory": "few-buffers"}),
    "laplace": (mh.PureDP(epsilon=1.0), {}),
    "laplace, window": (mh.PureDP(epsilon=0.002), {"window": 3, "p": math.inf}),
    "stairs": (mh.PureDP(epsilon=8.0), {"horizon": 6}),
    "stairs, decay": (mh.PureDP(epsilon=8.0), {"decay": 0.5}),
}


@pytest.mark.parametrize("name", EVERY_NOISE)
def test_counters_with_every_noise_are_restored_and_never_with_a_stronger_promise(name):
    import hashlib

    promise, options = EVERY_NOISE[name]
    counter = mh.stream.prefix_counter(**{"horizon": 20, "privacy": promise, **options})
    counter.push_many([0.5] * 4)
    state = State(counter._plan, counter._engine, 4, list(counter._last), None)
    content = state.to_bytes("0" * 32)
    again = State.from_bytes(content)
    assert again.plan.to_dict() == counter._plan.to_dict()
    assert (again.plan.deviations == counter._plan.deviations).all()
    assert again.plan.certificate == counter.certificate
    length = int.from_bytes(content[15:23], "little")
    header = json.loads(content[23 : 23 + length])
    stronger = {"epsilon": 0.5} if isinstance(promise, mh.PureDP) else {"rho": 0.01}
    header["plan"]["privacy"] |= stronger
    text = json.dumps(header).encode()
    body = content[:15] + len(text).to_bytes(8, "little") + text + content[23 + length : -32]
    with pytest.raises(mh.InvalidInput, match="not a saved counter"):
        State.from_bytes(body + hashlib.sha256(body).digest())


def test_the_charge_is_remembered_and_not_repeated(tmp_path):
    ledger = mh.Ledger.create(
        tmp_path / "budget.db", budget=mh.ZCDP(rho=1.0), neighbors="add-remove"
    )
    counter = mh.stream.prefix_counter(10, PROMISE, ledger=ledger)
    head = counter.ledger_head
    counter.save(tmp_path / "state")
    assert mh.stream.restore(tmp_path / "state").ledger_head == head
    assert len(ledger.entries()) == 1
