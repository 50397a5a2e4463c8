"""`muhat bounds`: what no mechanism can beat. No data is read, and nothing is spent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from muhat._text import joined, table
from muhat.cli.options import Promised, promise_options
from muhat.cli.where import bounds_from, moment_from, where_from
from muhat.errors import InvalidInput
from muhat.privacy import from_flags

if TYPE_CHECKING:
    from muhat.bounds import LowerBound
    from muhat.domains import Ball
    from muhat.privacy import Privacy

SCHEMA = "muhat.bounds/1"
IN_WIDTHS = "An error in a column counts in widths of its interval, as in `muhat plan`."

_WHOM = {"any": "any mechanism", "unbiased": "unbiased", "additive": "additive noise"}


@click.command(
    epilog="Example: muhat bounds --ball 1 --dim 10 --n 1000 --rho 0.1, or of a mean of small "
    "bias: muhat bounds --bias 0.001 --n 1000 --epsilon 1"
)
@click.option(
    "--bounds",
    multiple=True,
    metavar="COLUMN=LOW:HIGH",
    help="Records lie in a box; once for each column.",
)
@click.option("--ball", metavar="R[@C1,C2,…]", help="Records lie in a ball of radius R.")
@click.option("--dim", type=int, help="The number of columns, with --ball or --cells.")
@click.option("--domain", metavar="DOMAIN", help="Another set, as in Python: 'Simplex(5)'.")
@click.option("--cells", type=int, help="Of a quantile among so many values, errors in ranks.")
@click.option("--q", type=float, help="With --cells: which quantile; 0.5 unless given.")
@click.option(
    "--bias",
    type=float,
    help="Records lie anywhere, and the bias is at most this; see --moment.",
)
@click.option(
    "--moment",
    metavar="K,SIZE",
    help="With --bias: E|x − mean|^K ≤ SIZE^K; 2,1 unless given.",
)
@click.option(
    "--interval",
    type=float,
    help="With --bias: the mean is known to lie in an interval this long; 1 unless given.",
)
@click.option("--n", type=int, required=True, help="The public number of rows.")
@click.option(
    "--p", type=float, help="The error is measured in the ℓ_p norm, 2 to inf; 2 unless given."
)
@promise_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def bounds(
    *,
    bounds: tuple[str, ...],
    ball: str | None,
    dim: int | None,
    domain: str | None,
    cells: int | None,
    q: float | None,
    bias: float | None,
    moment: str | None,
    interval: float | None,
    n: int,
    p: float | None,
    promise: Promised,
    as_json: bool,
) -> None:
    """Show what no private mean or quantile can beat; no data is read.

    With --bounds, --ball or --domain for any mean, for unbiased ones and for additive noise, in a
    ball with what muhat achieves; with --bias for means of a small bias; with --cells for
    quantiles.
    """
    if bool(bounds) + sum(one is not None for one in (ball, domain, bias, cells)) != 1:
        raise InvalidInput(
            "say what the bounds are about, in one way: --bounds COLUMN=LOW:HIGH for each "
            "column, --ball R --dim D, --domain 'Simplex(5)' or another set, --bias B for means of "
            "a small bias, or --cells U for a quantile among U values."
        )
    privacy = from_flags(promise)
    if cells is None:
        _refuse_beside("a mean", {"--q": q})
    if cells is not None:
        _refuse_beside("--cells", {"--p": p, "--moment": moment, "--interval": interval})
        fields, text = _of_quantile(cells, 0.5 if q is None else q, dim or 1, n, privacy)
    elif bias is not None:
        _refuse_beside("--bias", {"--dim": dim, "--p": p})
        fields, text = _of_bias(bias, moment, interval, n, privacy)
    else:
        where = "--bounds" if bounds else "--ball" if domain is None else "--domain"
        _refuse_beside(where, {"--moment": moment, "--interval": interval})
        order = 2.0 if p is None else p
        if ball is None:
            _refuse_beside(where, {"--dim": dim})
        if ball is not None:
            fields, text = _of_ball(ball, dim, n, privacy, order)
        elif domain is not None:
            fields, text = _of_domain(domain, n, privacy, order)
        else:
            fields, text = _of_box(bounds, n, privacy, order)
    click.echo(json.dumps({"schema": SCHEMA, **fields}, indent=2) if as_json else text)


def _refuse_beside(option: str, others: dict[str, Any]) -> None:
    for name, value in others.items():
        if value is not None:
            raise InvalidInput(f"{name} has no use with {option}; leave it out.")


def _of_bias(
    bias: float, moment: str | None, interval: float | None, n: int, privacy: Privacy
) -> tuple[dict[str, Any], str]:
    from muhat.bounds import trilemma

    order, scale = moment_from(moment or "2,1")
    found = trilemma(
        n,
        bias=bias,
        moment_order=order,
        scale=scale,
        interval=1.0 if interval is None else interval,
        privacy=privacy,
    )
    return {"about": "a mean of small bias", **found.to_dict()}, found.describe()


def _of_quantile(
    cells: int, q: float, dim: int, n: int, privacy: Privacy
) -> tuple[dict[str, Any], str]:
    from muhat.bounds import rank_error
    from muhat.privacy import to_dict

    rows, found = [["rank error", "at least", "theorem"]], []
    for confidence in (0.5, 0.95, 0.999, None):
        found.append(rank_error(cells, q=q, n=n, privacy=privacy, confidence=confidence, dim=dim))
        kept = "root mean square" if confidence is None else f"with {100 * confidence:g} %"
        rows.append([kept, _shown(found[-1]), found[-1].theorem])
    title = f"Quantile {q:g} among {cells:,} values · {privacy.describe()} · n = {n}"
    about = {"about": "a quantile", "q": q, "cells": cells, "dim": dim, "n": n}
    fields = {**about, "privacy": to_dict(privacy), "bounds": [one.to_dict() for one in found]}
    note = "Whatever the mechanism, on some dataset its rank error is no smaller."
    return fields, joined([title, "", *table(rows, right={1}), "", note])


def _of_ball(
    text: str, dim: int | None, n: int, privacy: Privacy, p: float
) -> tuple[dict[str, Any], str]:
    from muhat.bounds import ball, mean

    domain = _ball(text, dim)
    where = {"about": "a mean in a ball", "radius": domain.radius, "dim": domain.dim}
    if p != 2:
        # What is known of any mean, and what muhat achieves, is about Euclidean errors.
        found = mean(domain, n=n, privacy=privacy, p=p)
        return {**where, **_fields(found, n, privacy, p)}, _text(domain.dim, found, n, privacy, p)
    table = ball(n=n, dim=domain.dim, radius=domain.radius, privacy=privacy)
    return {**where, "p": p, **table.to_dict()}, table.describe()


def _ball(text: str, dim: int | None) -> Ball:
    from muhat.domains import Ball

    if dim is None and "@" not in text:
        raise InvalidInput("--ball needs the number of columns: --dim D.")
    where = where_from(bounds=(), ball=text, magnitude=(), columns=None, dim=dim)
    assert isinstance(where.domain, Ball)
    return where.domain


def _of_box(
    texts: tuple[str, ...], n: int, privacy: Privacy, p: float
) -> tuple[dict[str, Any], str]:
    from muhat.bounds import mean
    from muhat.domains import Box
    from muhat.statistics.bounded import as_domain

    named = bounds_from(texts)
    as_domain(named)
    # In widths of the columns every box is the unit cube, wherever it lies.
    cube = Box([0.0] * len(named), [1.0] * len(named))
    found = mean(cube, n=n, privacy=privacy, p=p)
    where = {"about": "a mean in a box", "columns": named, "errors": IN_WIDTHS}
    text = _text(cube.dim, found, n, privacy, p)
    return {**where, **_fields(found, n, privacy, p)}, f"{text}\n{IN_WIDTHS}"


def _of_domain(text: str, n: int, privacy: Privacy, p: float) -> tuple[dict[str, Any], str]:
    from muhat.bounds import mean
    from muhat.cli.written_domain import domain_from

    domain = domain_from(text)
    found = mean(domain, n=n, privacy=privacy, p=p)
    where = {"about": "a mean in a domain", "domain": domain.to_dict()}
    return {**where, **_fields(found, n, privacy, p)}, _text(domain.dim, found, n, privacy, p)


def _text(dim: int, found: tuple[LowerBound, ...], n: int, privacy: Privacy, p: float) -> str:
    from muhat.bounds.lower_bound import NUMBERS

    columns = "one column" if dim == 1 else f"{dim} columns"
    title = f"Mean of {columns} · {privacy.describe()} · n = {n} · ℓ_{p:g} errors"
    rows = [["theorem", "error at least", "of", "on", "constant"]]
    for bound in found:
        whom = _WHOM[bound.mechanisms]
        rows.append([bound.theorem, _shown(bound), whom, bound.where, bound.source])
    proved = [bound for bound in found if bound.value is not None and not bound.is_conditional]
    proved.sort(key=lambda bound: bound.value or 0.0, reverse=True)
    anybody = [bound for bound in proved if bound.mechanisms == "any"]
    # What any mechanism errs first, then what is said of fewer if that is more.
    notes = [*dict.fromkeys(best.sentence() for best in (*anybody[:1], *proved[:1]))]
    return joined([title, "", *table(rows, right=NUMBERS), "", *notes]).rstrip()


def _shown(bound: LowerBound) -> str:
    from muhat.bounds.lower_bound import rounded_down

    if bound.value is not None:
        return rounded_down(bound.value)
    return "rate only" if "rate" in bound.assumptions[-1] else "not applicable"


def _fields(found: tuple[LowerBound, ...], n: int, privacy: Privacy, p: float) -> dict[str, Any]:
    from muhat.privacy import to_dict

    return {
        "n": n,
        "privacy": to_dict(privacy),
        "p": "inf" if p == float("inf") else p,
        "bounds": [bound.to_dict() for bound in found],
    }
