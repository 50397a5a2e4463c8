"""Means, quantiles and counts when nobody may see the records: the local and the shuffle model.

protocol = muhat.protocols.local_mean(domain=…, n=…, privacy=…)
message = protocol.client().randomize(record)          on everybody's device
server = protocol.server()
server.take(messages)
server.finish()                                        the next round's protocol, or a Release
"""

from __future__ import annotations

from muhat.protocols.counts.count_protocols import (
    local_quantile,
    local_ranges,
    shuffle_quantile,
    shuffle_ranges,
)
from muhat.protocols.estimators.ranges_result import CountedRange
from muhat.protocols.means.mean_protocols import local_mean, shuffle_mean
from muhat.protocols.roles.client import Client
from muhat.protocols.roles.collector import Intake
from muhat.protocols.roles.crowd import Crowd
from muhat.protocols.roles.device_account import DeviceAccount
from muhat.protocols.roles.protocol import Protocol
from muhat.protocols.roles.reading import read_round
from muhat.protocols.roles.sealed_protocol import SealedProtocol, Signer
from muhat.protocols.roles.sealing_keys import SealingKey, ServerKey
from muhat.protocols.roles.server import Server
from muhat.protocols.roles.shuffler import Shuffler
from muhat.protocols.roles.simulation import simulate
from muhat.protocols.roles.survey import Survey

__all__ = [
    "Client",
    "CountedRange",
    "Crowd",
    "DeviceAccount",
    "Intake",
    "Protocol",
    "SealedProtocol",
    "SealingKey",
    "Server",
    "ServerKey",
    "Shuffler",
    "Signer",
    "Survey",
    "local_mean",
    "local_quantile",
    "local_ranges",
    "read_round",
    "shuffle_mean",
    "shuffle_quantile",
    "shuffle_ranges",
    "simulate",
]
