"""Picks a mean of small bias before any data is seen, or says which theorem forbids it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn

from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import Floats
from muhat._words import APPROXIMATE, BOX, Parameter, Part, example_of_reals, given, rows
from muhat.bounds.trilemma import trilemma
from muhat.domains.reals import Reals
from muhat.errors import Impossible, InvalidInput
from muhat.mechanisms.learning.padded import PaddedMean
from muhat.mechanisms.learning.recorded_number import FAILURE, RecordedNumber
from muhat.mechanisms.learning.symmetric_method import SymmetricMethod
from muhat.planning.low_bias_method import Alternative, LowBiasMethod, bias_line, class_of
from muhat.planning.low_bias_plan import LowBiasPlan
from muhat.planning.low_bias_recorded import RecordedMean
from muhat.planning.low_bias_wish import Wish, checked_wish, largest_biases
from muhat.planning.reals_rule import missing_line
from muhat.privacy import Privacy

INTERVAL = "the middle of that interval"
"""What a missing value counts as, unless it is left out."""

DRAWN = (
    "as many complete records as there surely are, but for a chance of "
    f"{FAILURE:g}, are drawn at random and averaged; bias and error are those for so many"
)
"""What is said where missing values are left out."""

CLIPPED = ("clipped-laplace", "clipped-normal")
SYMMETRIC = ("symmetric", "karwa-vadhan")
LOW_BIAS_MECHANISMS = (*CLIPPED, *SYMMETRIC)


def plan_low_bias_mean(
    domain: Reals,
    *,
    n: int,
    privacy: Privacy,
    weights: ArrayLike | Mapping[str, float] | None,
    contributions: int,
    missing: str,
    mechanism: str | None,
    max_bias: ArrayLike | None,
    max_error: float | None,
    moment: Any,
    symmetric: bool,
    unbiased: bool,
    insist: bool,
) -> LowBiasPlan:
    """Plan a mean of records in Reals whose bias is bounded.

    Of the mechanisms with a bias of at most `max_bias` the one with the least predicted error is
    taken, and the others become its alternatives; without `max_bias` the bias is chosen too.
    """
    if missing == "drop":
        options: dict[str, Any] = {
            "weights": weights,
            "contributions": contributions,
            "mechanism": mechanism,
            "max_bias": max_bias,
            "moment": moment,
            "symmetric": symmetric,
            "unbiased": unbiased,
        }
        return _of_recorded(domain, n, privacy, options, max_error=max_error, insist=insist)
    bias = None if max_bias is None else largest_biases(max_bias, domain.dim)
    symmetric = symmetric or mechanism == "symmetric"
    unbiased = unbiased or (bias is not None and not bias.any())
    if unbiased:
        _refuse_without_bias(privacy, mechanism, symmetric=symmetric)
        bias = None
    wish = checked_wish(domain, n, privacy, weights, contributions, moment)
    if max_error is not None:
        max_error = _check.positive("max_error", max_error)
        _refuse_an_unreachable_error(wish, bias, max_error, symmetric=symmetric)
    ranked = _ranked(wish, bias, mechanism, symmetric=symmetric, insist=insist)
    best = ranked[0]
    plan = LowBiasPlan(
        domain=domain,
        n=wish.n,
        privacy=privacy,
        weights=wish.weights,
        contributions=wish.contributions,
        moment=wish.moment,
        method=best,
        assumptions=_assumptions(wish, best, missing),
        missing=missing,
        alternatives=tuple(map(Alternative.of, ranked[1:])),
        curve=wish.reached,
    )
    if max_error is not None and plan.rmse > max_error:
        raise InvalidInput(
            f"max_error = {max_error:g} is not reached: the best plan here has a root mean square "
            f"error of up to {plan.rmse:.4g}. Allow more bias or error, or spend more."
            + _width_hint(best)
        )
    return plan


def _of_recorded(
    domain: Reals,
    n: int,
    privacy: Privacy,
    options: dict[str, Any],
    *,
    max_error: float | None,
    insist: bool,
) -> LowBiasPlan:
    """Count the complete records first; the plan for all n is the one if nothing is missing."""
    contributions = _check.count("contributions", options["contributions"])
    number = RecordedNumber.of(privacy, _check.count("n", n), contributions)

    def plan_for(records: int, **more: Any) -> LowBiasPlan:
        return plan_low_bias_mean(
            domain, n=records, privacy=number.rest, missing="none", **options, **more
        )

    def method_for(records: int) -> LowBiasMethod:
        # No warning may speak of how many records there are.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plan_for(records, max_error=None, insist=insist).method

    complete = plan_for(n, max_error=max_error, insist=insist)
    lines = list(complete.assumptions)
    symmetric = complete.method.assumes_symmetry
    bias = _largest(complete.method)
    lines[0] = bias_line(
        complete.moment,
        bias,
        symmetric=symmetric,
        records="complete records",
        proviso=" if nothing is missing",
    )
    declared = lines.index(missing_line("none", domain.dim, INTERVAL))
    lines[declared] = missing_line("drop", domain.dim, INTERVAL)
    return replace(
        complete,
        privacy=privacy,
        method=RecordedMean(complete.method, number, privacy, method_for),
        missing="drop",
        assumptions=(*lines, DRAWN),
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


def _refuse_an_unreachable_error(
    wish: Wish, limits: Floats | None, error: float, *, symmetric: bool
) -> None:
    """The bounds speak of mechanisms whose bias is small without symmetry too."""
    if wish.domain.dim > 1 or limits is None or symmetric:
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


def _ranked(
    wish: Wish,
    bias: Floats | None,
    mechanism: str | None,
    *,
    symmetric: bool,
    insist: bool,
) -> list[LowBiasMethod]:
    """The methods that compete, by their errors; those that do not come last."""
    if mechanism is not None:
        clipped = [CLIPPED[0] if pure else CLIPPED[1] for pure in wish.kinds]
        _check.one_of(WITH_A_MOMENT, mechanism, [*clipped, *SYMMETRIC])
    assumed = None
    if mechanism in SYMMETRIC or (symmetric and mechanism is None):
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


def _assumptions(wish: Wish, method: LowBiasMethod, missing: str) -> tuple[str, ...]:
    records = "one record" if wish.contributions == 1 else f"{wish.contributions} records"
    lines = [
        bias_line(wish.moment, _largest(method), symmetric=method.assumes_symmetry),
        "errors and intervals are about the records clipped to an interval",
        missing_line(missing, wish.domain.dim, INTERVAL),
        f"n = {wish.n} is public",
        f"a person contributes at most {records}",
        "the moment, the magnitude and the bias were chosen without looking at the data",
    ]
    if isinstance(method, SymmetricMethod):
        lines.insert(1, "rows are split by their number, which no record decides")
        lines.insert(1, f"the mean of every column lies within ±{method.reach:.2g}")
    elif wish.domain.magnitude is not None:
        lines.insert(1, f"the mean of every column lies within ±{wish.domain.magnitude:g}")
    return tuple(lines)
