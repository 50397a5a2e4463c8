"""What a service answers over HTTP, to whom, and what it says about itself."""

from __future__ import annotations

import http.client
import json
import logging
import re
import socket
import time
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from collections_of_tests import Collection, described, reports_of

from muhat.errors import InvalidInput
from muhat.protocols.services.config import ServiceLimits, Tls
from muhat.protocols.services.loopback import UNLIMITED
from muhat.protocols.services.running import running
from muhat.protocols.services.sending import Sender, send_all
from muhat.protocols.services.service import token_of
from muhat.release.release import Release


def wait_for(sender: Sender, path: str, status: int):
    until = time.monotonic() + 60
    while (found := sender.once("GET", path)).status != status:
        assert time.monotonic() < until, found
        time.sleep(0.01)
    return found


def test_a_round_of_the_local_model_over_http(tmp_path, caplog):
    caplog.set_level(logging.INFO, "muhat.protocols.services")
    collection = Collection.of(
        tmp_path, described("local"), sealed=False, turnout=15, access_log=True
    )
    reports = reports_of(collection.round, 16)
    length = len(reports[0])
    with running("server", collection.server) as address, Sender(address) as sender:
        operator = Sender(address, secret=token_of(tmp_path / "server", "server"))
        assert sender.description() == (tmp_path / "description").read_bytes()
        assert json.loads(sender.once("GET", "/health").body) == {
            "role": "server",
            "round": 1,
            "phase": "collecting",
        }
        assert sender.once("GET", "/release").status == 404
        assert sender.once("GET", "/next").status == 404
        assert sender.once("GET", "/secrets-of-anna").status == 404
        assert sender.once("PUT", "/reports", reports[0]).status == 405
        assert sender.once("POST", "/reports", bytes(length + 1)).status == 413
        assert sender.once("POST", "/reports", reports[0][:-1]).status == 400
        assert chunked(address, [bytes(length)] * 3) == 413
        assert chunked(address, [reports[0][:5], reports[0][5:]]) == 201
        assert not sender.send(reports[0])
        for path in ("/close", "/round", "/batches/x/0", "/batches/x/close"):
            assert sender.once("POST", path, b"5").status == 401
            with Sender(address, secret="guess") as guessing:
                assert guessing.once("POST", path, b"5").status == 401
        assert operator.once("POST", "/close").status == 409  # below the minimum
        assert send_all(address, reports[:15], 4) == (15, 14)
        release = Release.from_json(wait_for(sender, "/release", 200).body.decode())
        assert release.n == 15
        assert sender.once("POST", "/reports", reports[15]).status == 410
        assert sender.once("POST", "/reports", reports[3]).status == 200
        with pytest.raises(InvalidInput, match=r"refuses \(410\): the round is closed"):
            sender.send(reports[15])
        told = sender.once("GET", "/metrics").body.decode()
        operator.close()
    assert 'muhat_outcomes_total{outcome="taken"} 15\n' in told
    assert "muhat_users 15\n" in told
    assert all(
        re.fullmatch(r'# TYPE muhat_\w+ (gauge|counter)|muhat_\w+({\w+="[\w ]+"})? \d+', line)
        for line in told.splitlines()
    )
    lines = [record.getMessage() for record in caplog.records]
    assert "POST /reports 201" in lines
    assert "GET … 404" in lines
    assert not [line for line in lines if "127.0.0.1" in line or "anna" in line]
    assert all(re.fullmatch(r"(GET|POST|…) (/\w+|/batches/…|…) \d{3}", line) for line in lines)


def chunked(address: str, parts: list[bytes]) -> int:
    """The status of a body whose length nobody has declared."""
    parts_of = urlsplit(address)
    connection = http.client.HTTPConnection(parts_of.hostname, parts_of.port, timeout=10)
    connection.request(
        "POST",
        "/reports",
        iter(parts),
        encode_chunked=True,
        headers={"Transfer-Encoding": "chunked"},
    )
    status = connection.getresponse().status
    connection.close()
    return status


def test_who_asks_too_often_or_too_slowly_is_put_off(tmp_path):
    limits = ServiceLimits(per_second=1000, per_minute_and_address=3, seconds=1)
    collection = Collection.of(tmp_path, described("local"), sealed=False, limits=limits)
    with running("server", collection.server) as address, Sender(address) as sender:
        (report,) = reports_of(collection.round, 1)
        assert sender.once("POST", "/reports", report).status == 201
        slow = socket.create_connection((urlsplit(address).hostname, urlsplit(address).port))
        slow.sendall(b"POST /reports HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf")
        assert slow.makefile("rb").readline().split()[1] == b"408"
        slow.close()
        assert sender.once("POST", "/reports", report).status == 200
        refused = sender.once("POST", "/reports", report)
        assert (refused.status, refused.retry_after) == (429, 1.0)
        assert sender.once("GET", "/health").status == 200


def test_the_certificate_of_the_configuration_is_shown(tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "private.pem"
    write_certificate(certificate, key)
    tls = Tls(str(certificate), str(key))
    collection = Collection.of(tmp_path / "c", described("local"), sealed=False, tls=tls)
    (report,) = reports_of(collection.round, 1)
    with running("server", collection.server) as address:
        assert address.startswith("https://127.0.0.1:")
        with Sender(address, ca=str(certificate)) as sender:
            assert sender.send(report)
        with Sender(address, ca=str(certificate), pinned=True) as sender:
            assert not sender.send(report)
        assert Sender(address).once("GET", "/round") is None
        with pytest.raises(InvalidInput, match="nobody vouches"):
            Sender(address).send(report)
        assert Sender(address.replace("https", "http")).once("GET", "/round") is None
    wrong = replace(collection.server, tls=Tls(str(key), str(certificate)))
    with pytest.raises(InvalidInput, match="certificate"):
        wrong.checked("server")


def write_certificate(certificate, key):
    """Of 127.0.0.1, by itself, for a day."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    own = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(own.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(own, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        own.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def test_web_pages_of_named_origins_may_answer(tmp_path):
    collection = Collection.of(
        tmp_path, described("local"), sealed=False, origins=("https://survey.example",)
    )
    with running("server", collection.server) as address:
        parts = urlsplit(address)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
        for origin, allowed in (("https://survey.example", True), ("https://evil.example", False)):
            connection.request("GET", "/round", headers={"Origin": origin})
            answer = connection.getresponse()
            answer.read()
            assert (answer.getheader("Access-Control-Allow-Origin") == origin) == allowed
        connection.close()


def test_a_sealed_round_over_http_with_shuffler_and_server(tmp_path):
    collection = Collection.of(tmp_path, described("single"))
    reports = reports_of(collection.round, 20)
    with running("server", collection.server) as server:
        shuffling = replace(collection.shuffler, forward_to=server)
        with running("shuffler", shuffling) as shuffler, Sender(server) as reader:
            assert reader.once("POST", "/reports", reports[0]).status == 404
            own = Sender(server, secret=token_of(tmp_path / "server", "server"))
            assert own.once("POST", "/close").status == 409
            assert send_all(shuffler, reports, 4) == (20, 20)
            release = Release.from_json(wait_for(reader, "/release", 200).body.decode())
            own.close()
    assert release.n == 20
    assert UNLIMITED.per_minute_and_address == 0
