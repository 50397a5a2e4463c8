"""`muhat protocol`: means, quantiles and counts without a trusted curator, or a simulation."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from muhat._text import joined
from muhat.cli.errors import FriendlyGroup
from muhat.cli.options import (
    COLUMNS,
    Promised,
    column_names,
    data_from,
    delimiter_option,
    list_option,
    number,
    promise_options,
)
from muhat.cli.output_files import PRIVATE, check_apart, output
from muhat.cli.protocol_account import account as account_group
from muhat.cli.protocol_files import (
    fill,
    read_description,
    read_round,
    write_all,
    write_description,
)
from muhat.cli.protocol_sealed import key as key_command
from muhat.cli.protocol_sealed import server_of, signer_option
from muhat.cli.protocol_sealed import sign as sign_command
from muhat.cli.protocol_sealed import signer as signer_command
from muhat.cli.protocol_serve import SERVICE_COMMANDS, fetched, send_to
from muhat.cli.where import bounds_from, where_from
from muhat.errors import InvalidInput
from muhat.privacy import from_flags

if TYPE_CHECKING:
    from muhat.protocols import Protocol
    from muhat.protocols.roles.collector import Collector
    from muhat.release.release import Release


@click.group(
    cls=FriendlyGroup,
    epilog="Example: muhat protocol simulate people.csv --columns age --bounds age=16:90 "
    "--epsilon 1",
)
def protocol() -> None:
    """Means, quantiles and counts when nobody may see the records: local and shuffle model."""


for command in (account_group, key_command, signer_command, sign_command, *SERVICE_COMMANDS):
    protocol.add_command(command)


_states_option = click.option(
    "--state",
    "states",
    multiple=True,
    metavar="FILE",
    help="What `muhat protocol collect` has written; once for every file.",
)

_claims_option = click.option(
    "--claims", metavar="FOLDER", help="Where closed rounds are noted; a folder of your own."
)


def _where_options(command: Any) -> Any:
    for option in (
        click.option(
            "--honest",
            type=int,
            help="In the shuffle model, how many of those who answer the promise counts on.",
        ),
        click.option("--minimum", type=int, help="With fewer answers there is no result."),
        click.option(
            "--model",
            type=click.Choice(["local", "shuffle"]),
            default="local",
            show_default=True,
            help="Trust nobody, or a shuffler that mixes messages.",
        ),
        click.option(
            "--cells",
            type=int,
            metavar="K",
            help="Instead of a mean, count people in K equal cells of a column.",
        ),
        list_option("--q", "Q1,Q2,…", help="Instead of a mean, these quantiles of a column."),
        click.option("--dim", type=int, help="The number of columns, where they have no names."),
        click.option(
            "--magnitude",
            metavar="M",
            help="If nobody knows bounds: values lie within ±M, as generous as you like.",
        ),
        click.option("--ball", metavar="R[@C1,C2,…]", help="Records lie in the ball of radius R."),
        click.option(
            "--bounds",
            multiple=True,
            metavar="COLUMN=LOW:HIGH",
            help="A column lies in an interval; once for each column.",
        ),
        COLUMNS,
    ):
        command = option(command)
    return promise_options(command)


@protocol.command(
    epilog="Example: muhat protocol new --bounds age=16:90 --n 10000 --epsilon 1 --out round1.json"
)
@click.option("--n", type=int, required=True, help="How many people are planned to take part.")
@click.option(
    "--survey", metavar="NAME", help="What the asking is called: asked again, it differs."
)
@click.option("--version", type=int, help="Of the survey; devices answer none that is older.")
@click.option("--expires", metavar="DATE", help="From then on no device answers.")
@click.option("--out", default="-", help="Where to write the description; standard output.")
@_where_options
def new(
    n: int,
    survey: str | None,
    version: int | None,
    expires: str | None,
    out: str,
    **options: Any,
) -> None:
    """Write the public description of a protocol's first round."""
    made = _planned(n, **options)
    if survey is not None:
        made = made.surveyed(survey, version=1 if version is None else version, expires=expires)
    elif version is not None or expires is not None:
        raise InvalidInput("--version and --expires are those of a --survey; name it.")
    write_description(out, made)


@protocol.command(epilog="Example: muhat protocol show round1.json")
@click.argument("description")
@signer_option
def show(description: str, signer: str | None) -> None:
    """Say what a description asks of a device, and what it promises."""
    click.echo(read_round(description, signer).describe())


@protocol.command(
    epilog="Example: muhat protocol client round1.json --record 0.3,0.5 --out message.bin, or "
    "muhat protocol client round1.json people.csv --out messages.bin, or "
    "muhat protocol client https://collect.example --record 41 --to https://collect.example"
)
@click.argument("description")
@click.argument("files", nargs=-1)
@click.option(
    "--record",
    metavar="X1,X2,…",
    help="One person's record; - is read from standard input, which no shell remembers.",
)
@click.option(
    "--answered", multiple=True, metavar="FILE", help="A round that was answered before; each."
)
@list_option("--columns", "A,B,…", help="The columns of FILES, in this order.")
@delimiter_option
@click.option(
    "--account",
    metavar="FILE",
    help="The device's account, for a RECORD; your own unless stated (muhat protocol account).",
)
@signer_option
@click.option("--no-account", is_flag=True, help="Keep none: nobody remembers what was answered.")
@click.option(
    "--out", default="-", help="Where to write messages, for you alone to read; standard output."
)
@click.option("--to", metavar="URL", help="Send to a service instead, until it has what was sent.")
@click.option("--ca", metavar="FILE", help="Who vouches for the service, if not your system's.")
def client(
    description: str,
    files: tuple[str, ...],
    record: str | None,
    answered: tuple[str, ...],
    columns: str | None,
    delimiter: str | None,
    account: str | None,
    signer: str | None,
    no_account: bool,
    out: str,
    to: str | None,
    ca: str | None,
) -> None:
    """Turn one RECORD, or every row of FILES, into a message, as a device does.

    DESCRIPTION is a file, or the address of a service that has it.

    A device answers a round once: asked again, it sends the same message, and its account says
    what it may answer. Every row of FILES is a person of its own, for whom no account is kept.
    """
    from muhat.protocols.roles.reading import read_round as round_of
    from muhat.protocols.roles.simulation import messages_of

    check_apart(out, (description, *files, *answered, *([account] if account else [])))
    if to is not None and out != "-":
        raise InvalidInput("--to and --out are two different places; give one.")
    found = fetched(description, ca)
    round_ = read_round(description, signer) if found is None else round_of(found, signer=signer)
    before = [read_description(path) for path in answered]
    if (record is None) == (not files):
        raise InvalidInput("give one --record, or files with one record a row.")
    if account is not None and (no_account or record is None):
        raise InvalidInput("--account is for one --record, without --no-account.")
    if record is not None:
        device = round_.client(before, account=False if no_account else account)
        typed = sys.stdin.readline() if record == "-" else record
        messages: Iterable[bytes] = [device.randomize(_numbers(typed))]
    else:
        crowd = round_.crowd(before)
        messages = messages_of(crowd, data_from(files, delimiter), column_names(columns))
    if to is not None:
        send_to(to, ca, messages)
        return
    # A message that nobody has mixed may be the record with next to no noise.
    written = write_all(out, messages, PRIVATE)
    if files:
        click.echo("1 message made" if written == 1 else f"{written} messages made", err=True)


@protocol.command(
    epilog="Example: muhat protocol collect round1.json monday.bin --out monday.state"
)
@click.argument("description")
@click.argument("files", nargs=-1)
@signer_option
@_states_option
@click.option("--key", metavar="FILE", help="The server's key, if the messages are sealed to it.")
@click.option(
    "--mixed", is_flag=True, help="They were mixed: a server's state, in the shuffle model too."
)
@click.option("--out", required=True, help="Where to write the state, for you alone to read.")
def collect(
    description: str,
    files: tuple[str, ...],
    signer: str | None,
    states: tuple[str, ...],
    key: str | None,
    mixed: bool,
    out: str,
) -> None:
    """Take the messages of FILES (or of standard input) and go on another time, or elsewhere.

    What was collected is a state; states of one round go together (--state), in any order, and a
    message that is in several of them counts once. `shuffle` and `server` close the round.
    """
    check_apart(out, (description, *files, *states, *([key] if key else [])))
    round_ = read_round(description, signer)
    collector: Collector = round_.shuffler()
    if mixed or collector.protocol.model == "local":
        collector = server_of(round_, key)
    fill(collector, states, files, round_)
    with output(out, PRIVATE) as stream:
        stream.write(collector.state())
    click.echo(repr(collector), err=True)


@protocol.command(epilog="Example: muhat protocol shuffle round1.json messages.bin --out mixed.bin")
@click.argument("description")
@click.argument("files", nargs=-1)
@signer_option
@_claims_option
@_states_option
@click.option(
    "--out",
    default="-",
    help="Where to write the mixed messages, for you alone to read; standard output.",
)
def shuffle(
    description: str,
    files: tuple[str, ...],
    signer: str | None,
    claims: str | None,
    states: tuple[str, ...],
    out: str,
) -> None:
    """Mix the messages of FILES (or of standard input) so that nobody knows whose is whose.

    Mix a round when all of it is there: what comes between two mixes can be told from the rest, and
    so a round is mixed once.
    """
    from muhat.protocols.roles.closing import close_shuffler

    check_apart(out, (description, *files, *states))
    round_ = read_round(description, signer)
    shuffler = round_.shuffler()
    fill(shuffler, states, files, round_)
    write_all(out, shuffler.mixed(), PRIVATE, lambda: close_shuffler(shuffler, claims))


@protocol.command(
    epilog="Example: muhat protocol server round1.json messages.bin --next round2.json"
)
@click.argument("description")
@click.argument("files", nargs=-1)
@click.option("--next", "following", default="-", help="Where the next round's description goes.")
@signer_option
@_claims_option
@_states_option
@click.option("--key", metavar="FILE", help="The server's key, if the messages are sealed to it.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def server(
    description: str,
    files: tuple[str, ...],
    following: str,
    signer: str | None,
    claims: str | None,
    states: tuple[str, ...],
    key: str | None,
    as_json: bool,
) -> None:
    """Take the messages of FILES (or of standard input) and close the round.

    A round is closed by one set of messages.
    """
    from muhat.protocols import Protocol
    from muhat.protocols.roles.closing import close_server

    check_apart(following, (description, *files, *states, *([key] if key else [])), "--next")
    round_ = read_round(description, signer)
    collector = server_of(round_, key)
    fill(collector, states, files, round_)
    result = collector.finish()
    close_server(collector, claims)
    if isinstance(result, Protocol):
        write_description(following, result)
    else:
        show_release(result, as_json)


@protocol.command(
    epilog="Example: muhat protocol simulate people.csv --bounds age=16:90 --epsilon 1"
)
@click.argument("files", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", is_flag=True, help="Do not describe the rounds.")
@click.option("--http", is_flag=True, help="Through real services, over this machine's loopback.")
@delimiter_option
@_where_options
def simulate(
    files: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    http: bool,
    delimiter: str | None,
    **options: Any,
) -> None:
    """Run clients, shuffler and server over a table, every row of FILES a person."""
    from contextlib import ExitStack

    from muhat.data import open_source
    from muhat.protocols.roles.simulation import simulate as run

    names = column_names(options["columns"])
    source = data_from(files, delimiter)
    where = names or list(bounds_from(options["bounds"])) or None
    users = open_source(source, where).rows()
    if not users:
        raise InvalidInput("the data have no rows: every row is a person.")
    made = _planned(users, **options)

    def watch(round_: Protocol) -> None:
        if not quiet:
            click.echo(round_.describe() + "\n", err=True)

    with ExitStack() as stack:
        through = None
        if http:
            from muhat.protocols.services.loopback import Loopback

            through = stack.enter_context(Loopback.opened(made)).round
        release = run(made, source, where, watch=watch, run=through)
    show_release(release, as_json)


def _planned(
    n: int,
    *,
    columns: str | None,
    bounds: tuple[str, ...],
    ball: str | None,
    magnitude: str | None,
    dim: int | None,
    model: str,
    minimum: int | None,
    honest: int | None,
    q: str | None,
    cells: int | None,
    promise: Promised,
) -> Protocol:
    from muhat import protocols

    names = column_names(columns)
    if honest is not None and model == "local":
        raise InvalidInput("--honest is for --model shuffle: the local model counts on nobody.")
    crowd: dict[str, Any] = {} if honest is None else {"honest": honest}
    if q is not None or cells is not None:
        named = bounds_from(bounds)
        elsewhere = (ball, magnitude, dim) != (None, None, None)
        if elsewhere or len(named) != 1 or names not in (None, list(named)):
            raise InvalidInput("--q and --cells are for one column, with --bounds COLUMN=LOW:HIGH.")
        ((column, (lower, upper)),) = named.items()
        asked = {"n": n, "privacy": from_flags(promise), "minimum": minimum, "column": column}
        asked |= crowd
        return _of_one_column(model, q, cells, {**asked, "lower": lower, "upper": upper})
    sizes = () if magnitude is None else (magnitude,)
    where = where_from(bounds=bounds, ball=ball, magnitude=sizes, columns=names, dim=dim)
    plan = protocols.local_mean if model == "local" else protocols.shuffle_mean
    domain = where.domain
    if isinstance(domain, dict) and where.columns is not None:
        from muhat.statistics.bounded import in_order

        domain = dict(in_order(domain, where.columns))
    return plan(
        domain=domain,
        n=n,
        privacy=from_flags(promise),
        columns=None if isinstance(domain, dict) else where.columns,
        minimum=minimum,
        **crowd,
    )


def _of_one_column(model: str, q: str | None, cells: int | None, asked: dict[str, Any]) -> Protocol:
    """Quantiles or counts of the only column that has bounds."""
    from muhat import protocols

    if q is None:
        count = protocols.local_ranges if model == "local" else protocols.shuffle_ranges
        return count(cells=cells or 0, **asked)
    if cells is not None:
        raise InvalidInput("--q and --cells are two different results; give one.")
    find = protocols.local_quantile if model == "local" else protocols.shuffle_quantile
    fractions = [number(text, f"--q {q}") for text in q.split(",")]
    return find(fractions if len(fractions) > 1 else fractions[0], **asked)


def _numbers(record: str) -> list[float]:
    """One person's numbers; what was typed is not repeated."""
    values = []
    for text in record.split(","):
        try:
            values.append(float(text) if text.strip() else float("nan"))
        except ValueError:
            values = []
            break
    if not values:
        raise InvalidInput("must be numbers with commas between them", parameter="--record")
    return values


def show_release(release: Release, as_json: bool) -> None:
    """The result, for people or for programs, and what it supposes."""
    click.echo(release.to_json() if as_json else repr(release))
    if not as_json:
        click.echo(joined(["", "It is supposed that:", *_listed(release)]), err=True)


def _listed(release: Release) -> list[str]:
    return [f"- {said}" for said in release.assumptions]
