"""A sender is patient with a service that is away, and short with one that refuses."""

from __future__ import annotations

import http.server
import threading
from typing import ClassVar

import pytest

from muhat.errors import InvalidInput
from muhat.protocols.services import sending
from muhat.protocols.services.sending import Sender


class Moody(http.server.BaseHTTPRequestHandler):
    """Answers as it is told, and keeps what it was sent."""

    moods: ClassVar[list[int]] = []
    sent: ClassVar[list[bytes]] = []

    def do_POST(self):
        self.sent.append(self.rfile.read(int(self.headers["Content-Length"])))
        status = self.moods.pop(0)
        if not status:
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(b"a reason\x1b[31m\n")

    def log_message(self, *_):
        pass


@pytest.fixture
def moody(monkeypatch):
    monkeypatch.setattr(sending, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(Moody, "sent", [])
    with http.server.HTTPServer(("127.0.0.1", 0), Moody) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/under/here/"
        server.shutdown()
        thread.join()


def test_the_same_bytes_are_sent_until_they_are_taken(moody, monkeypatch):
    monkeypatch.setattr(Moody, "moods", [503, 0, 429, 0, 201])
    with Sender(moody) as sender:
        assert sender.send(b"report")
    assert Moody.sent == [b"report"] * 5


def test_a_refusal_is_final_and_its_reason_steers_no_terminal(moody, monkeypatch):
    monkeypatch.setattr(Moody, "moods", [410])
    with Sender(moody) as sender, pytest.raises(InvalidInput, match=r"\(410\): a reason") as told:
        sender.send(b"report")
    assert "\x1b" not in str(told.value)


def test_patience_has_an_end(moody, monkeypatch):
    monkeypatch.setattr(Moody, "moods", [503] * 100)
    with Sender(moody, patience=0.02) as sender, pytest.raises(InvalidInput, match="a reason"):
        sender.send(b"report")
    with pytest.raises(InvalidInput, match="does not answer"):
        Sender("http://127.0.0.1:1", patience=0.0).send(b"report")


@pytest.mark.parametrize("to", ["ftp://x", "collect.example", "http://", "http://x:port"])
def test_an_address_must_be_one(to):
    with pytest.raises(InvalidInput):
        Sender(to)


def test_devices_send_where_nobody_reads_along():
    assert Sender("https://collect.example").is_hidden
    assert Sender("http://[::1]:80").is_hidden
    assert Sender("http://localhost:80").is_hidden
    with pytest.raises(InvalidInput, match="https://"):
        Sender("http://collect.example").send(b"report")
