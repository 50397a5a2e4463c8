"""Which protocol to run: the one with the least error for the promise and the trust there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from muhat import _check
from muhat._words import IN_REALS, Parameter
from muhat.domains import Domain, Reals
from muhat.errors import InvalidInput
from muhat.planning.task import Task
from muhat.planning.terms import Terms
from muhat.privacy import Privacy, check_promise
from muhat.privacy.worth import warn_of_large_delta
from muhat.protocols.means.bounded_mean import local_protocol, shuffle_protocol
from muhat.protocols.means.local_chain import LocalChain, local_chain
from muhat.protocols.means.local_three_rounds import LocalThreeRounds, local_three_rounds
from muhat.protocols.means.mean_estimator import column_names
from muhat.protocols.means.shuffle_chain import shuffle_chain
from muhat.protocols.roles.protocol import MOST_USERS, Protocol
from muhat.statistics.bounded import Bounded

NamedBounds = Mapping[str, tuple[float, float]]


def local_mean(
    *,
    domain: Domain | NamedBounds | Reals,
    n: int,
    privacy: Privacy,
    p: float = 2,
    weights: ArrayLike | Mapping[str, float] | None = None,
    columns: Sequence[str] | None = None,
    minimum: int | None = None,
    mechanism: str | None = None,
    faithful: bool = False,
) -> Protocol:
    """The first round of a mean in the local model: nobody but its owner sees a record.

    Args:
        domain: where records lie: a domain, or bounds by column. In `Reals` nobody knows, and a
            ball around the records is learnt in a few rounds more, from other people.
        n: how many people are planned to take part.
        privacy: what every message promises about its record.
        p: the norm of the error that is made small.
        weights: what errors of the coordinates are multiplied by; as in `plan_mean`.
        columns: names of the coordinates, where the domain has none.
        minimum: with fewer answers no result is given; half of the users unless stated.
        mechanism: what every device does, unless stated what errs least: "cap", one of a few
            directions; "interval", one of a few numbers, for one column; "subset", a set of the
            corners of a `Simplex` or of `Points`; "stairs", noise on a few columns, for a large
            ε; "gaussian", normal noise, where the promise is not pure. In `Reals`, "local-chain"
            unless stated, or "local-three-rounds" for the estimator of Huang, Liang and Yi (2021).
        faithful: that one as it was printed, without what was mended.

    >>> import muhat as mh
    >>> protocol = local_mean(domain=mh.Ball(1.0, dim=3), n=1000, privacy=mh.PureDP(epsilon=1.0))
    >>> device = protocol.client(account=False)
    >>> len(device.randomize([0.1, 0.2, 0.3])) == protocol.bytes_per_user
    True
    """
    if isinstance(domain, Reals):
        check_promise(privacy)
        _check.norm_order(p)
        names = [LocalChain.kind, LocalThreeRounds.kind]
        chosen = _check.one_of("mechanism", mechanism or LocalChain.kind, names)
        asked: dict[str, Any] = {"n": n, "privacy": privacy, "weights": weights}
        asked |= {"columns": columns, "minimum": minimum}
        warn_of_large_delta(privacy, _check.count("n", n))
        if chosen == LocalThreeRounds.kind:
            return local_three_rounds(domain, faithful=faithful, **asked)
        _require_unset(faithful)
        return local_chain(domain, **asked)
    _require_unset(faithful)
    return local_protocol(mean_task(domain, n, privacy, p, weights, columns), minimum, mechanism)


def _require_unset(faithful: bool) -> None:
    if faithful:
        raise InvalidInput(Parameter("faithful"), ' is for "local-three-rounds" ', IN_REALS, ".")


def shuffle_mean(
    *,
    domain: Domain | NamedBounds | Reals,
    n: int,
    privacy: Privacy,
    p: float = 2,
    weights: ArrayLike | Mapping[str, float] | None = None,
    columns: Sequence[str] | None = None,
    minimum: int | None = None,
    honest: int | None = None,
    most_bytes: int | None = None,
) -> Protocol:
    """The first round of a mean in the shuffle model: a shuffler mixes everybody's messages.

    Args:
        domain: where records lie: a domain, or bounds by column. In `Reals` nobody knows, and a
            ball around the records is learnt in a few rounds more: see `shuffle_chain`.
        n: how many people are planned to take part, at most.
        privacy: what the mixed messages promise about everybody's record: ApproxDP.
        p: the norm of the error that is made small.
        weights: what errors of the coordinates are multiplied by; as in `plan_mean`.
        columns: names of the coordinates, where the domain has none.
        minimum: the turnout below which nothing is mixed; nine in ten unless stated.
        honest: how many of those who answer must follow the protocol. The noise is what they add
            together; all of the minimum unless stated, which allows for no false answer if no more
            people answer.
        most_bytes: what a device may send at most; unless stated, as much as helps.

    >>> import muhat as mh
    >>> promise = mh.ApproxDP(epsilon=1.0, delta=1e-6)
    >>> protocol = shuffle_mean(domain=mh.Ball(1.0, dim=3), n=1000, privacy=promise)
    >>> protocol.messages_per_user
    24
    """
    if isinstance(domain, Reals):
        check_promise(privacy)
        _check.norm_order(p)
        if most_bytes is not None:
            raise InvalidInput(
                "most_bytes is for records of a known domain; leave it out in Reals."
            )
        warn_of_large_delta(privacy, _check.count("n", n))
        return shuffle_chain(
            domain,
            n=n,
            privacy=privacy,
            weights=weights,
            columns=columns,
            minimum=minimum,
            honest=honest,
        )
    task = mean_task(domain, n, privacy, p, weights, columns)
    return shuffle_protocol(task, minimum, most_bytes, honest)


def mean_task(
    domain: Domain | NamedBounds | Reals,
    n: int,
    privacy: Privacy,
    p: float,
    weights: ArrayLike | Mapping[str, float] | None,
    columns: Sequence[str] | None,
) -> Task:
    """Every argument checked."""
    asked = Bounded.of("mean", domain, p=p, weights=weights, missing="center")
    terms = Terms.checked(privacy, _check.count("n", n, most=MOST_USERS))
    if columns is None or asked.columns == tuple(columns):
        return Task(asked, terms)
    if asked.columns is not None:
        raise InvalidInput("the domain names its columns already; leave columns out.")
    return Task(replace(asked, columns=column_names(columns, asked.domain.dim)), terms)
