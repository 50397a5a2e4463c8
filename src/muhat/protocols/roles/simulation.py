"""A whole protocol on one machine: every row of a table is a person with a device.

Clients, shuffler and server are the real ones and exchange the real bytes. For trying a protocol
out: whoever runs it sees all records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from muhat._arrays import Floats
from muhat._progress import Progress
from muhat.data import open_source
from muhat.data.engine import gathered
from muhat.errors import InvalidInput
from muhat.noise.entropy import system_words
from muhat.protocols.roles.crowd import Crowd
from muhat.protocols.roles.protocol import Protocol
from muhat.release.release import Release

PEOPLE_AT_ONCE = 1 << 13

RunsRound = Callable[[Protocol, Floats, Any, list[Protocol]], Protocol | Release]
"""Asks a group of the people, who have answered rounds before: the next round, or the result."""


def simulate(
    protocol: Protocol,
    data: Any,
    columns: Sequence[str] | Sequence[int] | None = None,
    *,
    watch: Callable[[Protocol], None] | None = None,
    run: RunsRound | None = None,
) -> Release:
    """Run the protocol with one device a record, to the end.

    `watch` is shown the description of every round before it starts. In the local model everybody
    is asked in one round only, and who is asked when is drawn at random. `run` runs a round in
    another place than this process.
    """
    run = _round if run is None else run
    people = _records(protocol, data, columns)
    order = np.argsort(system_words(len(people)))
    asked = 0
    answered: list[Protocol] = []
    while True:
        if watch is not None:
            watch(protocol)
        group = order[asked : asked + protocol.users]
        if len(group) < protocol.minimum:
            raise InvalidInput(
                f"the data have {len(people)} records, which are not enough for round "
                f"{protocol.round}: it needs {protocol.minimum} more users."
            )
        result = run(protocol, people, group, answered)
        if not isinstance(result, Protocol):
            return result
        if protocol.estimator.model.is_mixed:
            answered.append(protocol)
        else:
            asked += len(group)
        protocol = result


def _round(
    protocol: Protocol, people: Floats, group: Any, answered: list[Protocol]
) -> Protocol | Release:
    crowd, server = protocol.crowd(answered), protocol.server()
    shuffler = protocol.shuffler() if protocol.estimator.model.is_mixed else None
    with Progress(len(group)) as progress:
        for part in parts(len(group)):
            (shuffler or server).take(crowd.randomize_many(people[group[part]]))
            progress.advance(part.stop - part.start)
    if shuffler is not None:
        server.take(shuffler.mixed())
    return server.finish()


def messages_of(
    crowd: Crowd, data: Any, columns: Sequence[str] | Sequence[int] | None = None
) -> Iterator[bytes]:
    """The message of every record of a table, some thousand people at a time."""
    people = _records(crowd.protocol, data, columns)
    with Progress(len(people)) as progress:
        for part in parts(len(people)):
            yield from crowd.randomize_many(people[part])
            progress.advance(part.stop - part.start)


def parts(people: int) -> Iterator[slice]:
    """Some thousand people at a time."""
    for start in range(0, people, PEOPLE_AT_ONCE):
        yield slice(start, min(start + PEOPLE_AT_ONCE, people))


def _records(protocol: Protocol, data: Any, columns: Any) -> Floats:
    """Everybody's record as floats, a missing value as not-a-number."""
    return gathered(open_source(data, columns, protocol.randomizer.record_dim))
