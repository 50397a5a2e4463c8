"""Picks a mean of small bias before any data is seen, or says which theorem forbids it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NoReturn

from muhat import _check
from muhat._arrays import Floats
from muhat._words import APPROXIMATE, BOX, Parameter, Part, example_of_reals, given, rows
from muhat.bounds.trilemma import trilemma
from muhat.errors import Impossible, InvalidInput
from muhat.mechanisms.learning.names import CLIPPED, SYMMETRIC
from muhat.mechanisms.learning.padded import PaddedMean
from muhat.mechanisms.learning.recorded_number import FAILURE, RecordedNumber
from muhat.mechanisms.learning.symmetric_method import SymmetricMethod
from muhat.noise.kinds import NoiseKind
from muhat.planning.low_bias_mean import LowBiasMean
from muhat.planning.low_bias_method import Alternative, LowBiasMethod, bias_line, class_of
from muhat.planning.low_bias_recorded import RecordedMean
from muhat.planning.low_bias_wish import Wish
from muhat.planning.printed import one_record
from muhat.planning.reals_mean import missing_line
from muhat.planning.terms import Terms
from muhat.privacy import Privacy
from muhat.statistics.reals import LowBias

INTERVAL = "the middle of that interval"
"""What a missing value counts as, unless it is left out."""

DRAWN = (
    "as many complete records as there surely are, but for a chance of "
    f"{FAILURE:g}, are drawn at random and averaged; bias and error are those for so many"
)
"""What is said where missing values are left out."""


def low_bias_mean(asked: LowBias, terms: Terms) -> LowBiasMean:
    """The mean of records in Reals with the least error whose bias is as small as was asked.

    The other mechanisms become its alternatives; if no bias was given it is chosen too.
    """
    if asked.missing == "drop":
        return _of_recorded(asked, terms)
    if asked.unbiased:
        _refuse_without_bias(terms.privacy, asked.mechanism, symmetric=asked.symmetric)
    wish = Wish(asked, terms)
    if asked.faithful:
        _refuse_what_is_not_printed(wish)
    if asked.max_error is not None:
        _refuse_an_unreachable_error(wish, asked.max_error)
    best, *others = _ranked(wish)
    if asked.faithful:
        # For comparison: what the same mechanism does without what the paper prints.
        others = _ranked(Wish(replace(asked, faithful=False), terms))
    mean = LowBiasMean(
        terms=terms,
        domain=asked.domain,
        weights=asked.weights,
        moment=wish.moment,
        method=best,
        premises=_premises(wish, best),
        missing=asked.missing,
        others=tuple(map(Alternative.of, others)),
        curve=wish.reached,
    )
    if asked.max_error is not None and mean.rmse > asked.max_error:
        raise InvalidInput(
            f"max_error = {asked.max_error:g} is not reached: the best plan here has a root mean "
            f"square error of up to {mean.rmse:.4g}. Allow more bias or error, or spend more."
            + _width_hint(best)
        )
    return mean


def _of_recorded(asked: LowBias, terms: Terms) -> LowBiasMean:
    """Count the complete records first; the mean of all n is the one if nothing is missing."""
    n = terms.n
    assert n is not None
    number = RecordedNumber.of(terms.privacy, n, terms.contributions)
    declared = replace(asked, missing="none")

    def mean_of(records: int, wanted: LowBias) -> LowBiasMean:
        return low_bias_mean(wanted, replace(terms, privacy=number.rest, n=records))

    def method_for(records: int) -> LowBiasMethod:
        return mean_of(records, replace(declared, max_error=None)).method

    complete = mean_of(n, declared)
    first = bias_line(
        complete.moment,
        _largest(complete.method),
        symmetric=complete.method.assumes_symmetry,
        records="complete records",
        proviso=" if nothing is missing",
    )
    rules = {
        missing_line("none", asked.domain.dim, INTERVAL): missing_line("drop", asked.domain.dim, "")
    }
    lines = [rules.get(line, line) for line in complete.premises[1:]]
    return replace(
        complete,
        terms=terms,
        method=RecordedMean(complete.method, number, terms.privacy, method_for),
        missing="drop",
        premises=(first, *lines, DRAWN),
    )


def _refuse_what_is_not_printed(wish: Wish) -> None:
    one_record(wish.terms)
    if NoiseKind.PURE not in wish.kinds and wish.asked.mechanism not in SYMMETRIC:
        raise InvalidInput(
            "Proposition 3.5 of Kamath et al. (2024) has Laplace noise, for pure or approximate "
            "privacy: use mh.PureDP, or leave faithful out."
        )


ALLOW_BIAS = Parameter("max_bias", "max_bias=...", "--max-bias")
WITH_A_MOMENT = Parameter("mechanism", "mechanism with a moment", "--mechanism with --moment")
THREE_WAYS_OUT: tuple[Part, ...] = (
    "Three ways out: allow a little bias (",
    Parameter("max_bias", "max_bias=0.01, moment=(2, 1.0)", "--max-bias 0.01 --moment 2,1"),
    "); allow a delta and assume symmetry (",
    Parameter(
        "privacy",
        "privacy=mh.ApproxDP(epsilon=1, delta=1e-6), symmetric=True",
        "--epsilon 1 --delta 1e-6 --symmetric",
    ),
    "); or bound the records (",
    Parameter("domain", "domain=mh.Box([lower], [upper])", "--bounds COLUMN=LOW:HIGH"),
    ", where the mean is unbiased).",
)


def _width_hint(method: LowBiasMethod) -> str:
    """What helps where noise hides the whole of ±magnitude."""
    if not isinstance(method, PaddedMean) or method.location is not None:
        return ""
    size = method.sharing.magnitude
    if size < method.pads.max():
        return ""
    return (
        f" Most of it comes from a magnitude of {size:g}: a smaller one would help, or more "
        "records to learn a short interval from."
    )


def _refuse_without_bias(privacy: Privacy, mechanism: str | None, *, symmetric: bool) -> None:
    if not privacy.spends_delta and privacy.renyi(Fraction(2)) is None:
        raise InvalidInput(
            f"nothing is known about unbiased means of unbounded records under "
            f"{privacy.describe()}: allow a bias with ",
            ALLOW_BIAS,
            ", use ",
            APPROXIMATE,
            " and ",
            given("symmetric", True),
            ", or bound the records, for instance by ",
            BOX,
            ".",
        )
    if not privacy.spends_delta:
        theorem = "Kamath et al. 2024, Theorem D.5"
        if privacy.implied_epsilon is not None:
            theorem = "Kamath et al. 2024, Theorem 5.2"
        elif privacy.implied_rho is None:
            theorem = "B8 in docs/proofs/trilemma.md"
        raise Impossible(
            f"no unbiased mean of unbounded records keeps {privacy.describe()} with a finite "
            f"error ({theorem}).",
            hint=THREE_WAYS_OUT,
        )
    if not symmetric:
        raise InvalidInput(
            Parameter("unbiased", "without bias in Reals", "without bias and bounds"),
            " the distribution must be symmetric: add ",
            given("symmetric", True),
            ", or allow a bias with ",
            ALLOW_BIAS,
            ", or bound the records, for instance by ",
            BOX,
            ".",
        )
    if mechanism not in (None, "symmetric"):
        raise InvalidInput(
            f"mechanism {mechanism!r:.40} is biased; without bias it is 'symmetric', or leave it "
            "out."
        )


def _refuse_an_unreachable_error(wish: Wish, error: float) -> None:
    """The bounds speak of mechanisms whose bias is small without symmetry too."""
    limits = wish.asked.limits
    if wish.domain.dim > 1 or limits is None or wish.asked.symmetric:
        return
    assumed, bias = class_of(wish.domain, wish.moment), float(limits[0])
    least = trilemma(wish.n, bias=bias, privacy=wish.privacy, **assumed)
    strongest = least.strongest
    if strongest.value is not None and error < strongest.value:
        raise Impossible(
            f"a root mean square error of {error:g} with a bias of at most {bias:g} is below what "
            f"any mechanism reaches on every such distribution: {strongest.value:.4g} "
            f"({strongest.theorem}; compare Theorem 2.1 of Kamath et al. 2024). Allow more bias "
            f"or an error above {strongest.value:.4g}, use more records, or spend more."
        )


def _ranked(wish: Wish) -> list[LowBiasMethod]:
    """The methods that compete, by their errors; those that do not come last."""
    bias, mechanism, insist = wish.asked.limits, wish.asked.mechanism, wish.asked.insist
    if mechanism is not None:
        clipped = [CLIPPED[kind] for kind in wish.kinds]
        _check.one_of(WITH_A_MOMENT, mechanism, [*clipped, *SYMMETRIC])
    assumed = None
    if mechanism in SYMMETRIC or (wish.asked.symmetric and mechanism is None):
        assumed = wish.symmetric(offset=mechanism != "karwa-vadhan")
    others: list[LowBiasMethod] = []
    if mechanism not in SYMMETRIC:
        named = [each for each in wish.best_clipped(bias) if mechanism in (None, each.name)]
        others = sorted(named, key=_error)
    if assumed is None and not others:
        _refuse_this_magnitude(wish, bias)
    if assumed is None:
        return others
    if bias is None or not others:
        # Symmetry was assumed for no bias at all: what has one is listed, and not taken.
        _refuse_too_few(assumed, wish.n, insist)
        _refuse_more_bias(assumed, bias)
        return [assumed, *others]
    is_usable = insist or wish.n >= assumed.least_n
    usable = [assumed] if is_usable and (assumed.biases <= bias).all() else []
    return sorted([*usable, *others], key=_error)


def _refuse_this_magnitude(wish: Wish, bias: Floats | None) -> NoReturn:
    size = wish.domain.magnitude
    symmetry: tuple[Part, ...] = ("assume symmetry: ", given("symmetric", True), ".")
    if not wish.privacy.spends_delta:
        symmetry = ("use ", APPROXIMATE, " and ", *symmetry)
    if size is None:
        raise InvalidInput(
            "a magnitude must be given: a generous public bound on every coordinate, for instance ",
            example_of_reals(wish.domain.dim),
            "; or ",
            *symmetry,
        )
    what = "any bias" if bias is None else f"a bias of at most {bias.min():g}"
    raise InvalidInput(
        Parameter("magnitude", f"magnitude = {size:g}", f"--magnitude {size:g}"),
        f" is too large for {what}: values up to it are rounded by more than that, and from "
        f"{wish.n} records no shorter interval is learnt.",
        hint=("Give a smaller magnitude or more records, allow more bias, or ", *symmetry),
    )


def _refuse_more_bias(method: LowBiasMethod, bias: Floats | None) -> None:
    if bias is not None and (method.biases > bias).any():
        least = bias.min()
        raise InvalidInput(
            Parameter("max_bias", f"max_bias = {least:g}", f"--max-bias {least:g}"),
            f" is below the bias of {method.name}, up to {_largest(method):.3g}: allow that, or "
            "leave it out.",
        )


def _largest(method: LowBiasMethod) -> float:
    return float(method.biases.max())


def _error(method: LowBiasMethod) -> float:
    return method.rmse


def _refuse_too_few(method: SymmetricMethod, n: int, insist: bool) -> None:
    if insist or n >= method.least_n:
        return
    raise InvalidInput(
        rows(n),
        f" is too small to find where the records lie: at least {method.least_n} are needed, "
        f"{method.least_n - n} more.",
        hint=(
            "Spend more, or take the risk that no value comes out at the full cost: ",
            given("insist", True),
            ".",
        ),
    )


def _premises(wish: Wish, method: LowBiasMethod) -> tuple[str, ...]:
    """What bias and errors rest on; the bias first."""
    lines = [
        bias_line(wish.moment, _largest(method), symmetric=method.assumes_symmetry),
        "errors and intervals are about the records clipped to an interval",
        missing_line(wish.asked.missing, wish.domain.dim, INTERVAL),
    ]
    if isinstance(method, SymmetricMethod):
        lines.insert(1, "rows are split by their number, which no record decides")
        lines.insert(1, f"the mean of every column lies within ±{method.reach:.2g}")
    elif wish.domain.magnitude is not None:
        lines.insert(1, f"the mean of every column lies within ±{wish.domain.magnitude:g}")
    return tuple(lines)
