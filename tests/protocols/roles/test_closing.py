"""A round is mixed once and has one result, whichever process closes it."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.protocols.roles.closing import close_server, close_shuffler

PROMISE = mh.ApproxDP(epsilon=1.0, delta=1e-6)
BALL = mh.Ball(1.0, dim=2)


def local(n=10):
    return protocols.local_mean(domain=BALL, n=n, privacy=PROMISE)


def _close(folder, queue):
    try:
        close_shuffler(protocols.Shuffler(local()), folder)
        queue.put(1)
    except mh.InvalidInput:
        queue.put(0)


def test_of_shufflers_that_race_one_hands_its_messages_on(tmp_path):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    racing = [context.Process(target=_close, args=(tmp_path, queue)) for _ in range(4)]
    for process in racing:
        process.start()
    assert sum(queue.get(timeout=60) for _ in racing) == 1
    for process in racing:
        process.join()


def test_rounds_are_closed_apart_from_each_other_and_for_each_role(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for protocol in (local(), local(11), local().surveyed("again")):
        close_shuffler(protocol.shuffler())
        close_server(protocol.server())
        with pytest.raises(mh.InvalidInput, match="already"):
            close_shuffler(protocol.shuffler())
    assert len(list((tmp_path / "muhat" / "rounds").iterdir())) == 6


def test_a_server_may_come_to_the_same_result_again_and_to_no_other(tmp_path):
    protocol = local()
    messages = protocol.crowd().randomize_many(np.zeros((10, 2)))
    for order in (messages, messages[::-1]):
        server = protocol.server()
        server.take(order)
        close_server(server, tmp_path)
    fewer = protocol.server()
    fewer.take(messages[1:])
    with pytest.raises(mh.InvalidInput, match="with other messages"):
        close_server(fewer, tmp_path)


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(mh.InvalidInput, match="cannot be made"):
        close_server(local().server(), tmp_path / "none")
