"""The arguments of a mean, made a statistic once: which kind it is follows from the domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muhat import _check
from muhat._words import IN_REALS, Parameter, given
from muhat.domains import Domain, Reals
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.names import LOW_BIAS
from muhat.statistics.bounded import Bounded, Columns, NamedBounds, in_order
from muhat.statistics.reals import (
    LowBias,
    Unassuming,
    assumed_moment,
    largest_biases,
    real_weights,
    reals_rule,
)

ASSUMED = ("max_bias", "max_error", "moment", "symmetric")
"""What is said of a distribution; without bounds alone."""


def mean_of(
    domain: Domain | NamedBounds | Reals | None, columns: Columns = None, **options: Any
) -> Bounded | Unassuming | LowBias:
    """The mean that these options of `plan_mean` ask for.

    `columns`, if they are known already, give bounds by name their order.
    """
    mechanism = options["mechanism"]
    if mechanism is not None and not isinstance(mechanism, str):
        got = type(mechanism).__name__
        raise InvalidInput("must be a name", parameter="mechanism", value=got)
    unbiased = options["unbiased"]
    if options["population"] and (unbiased or isinstance(domain, Reals)):
        raise InvalidInput(
            given("population", True),
            " is for bounded records, without ",
            given("unbiased", True),
            ".",
        )
    if isinstance(domain, Reals):
        return _in_reals(domain, columns, options)
    if options["insist"]:
        raise InvalidInput(
            Parameter("insist"), " is for ", IN_REALS, "; with bounds every n is enough."
        )
    if options["scale"] is not None:
        raise InvalidInput(Parameter("scale"), " is for ", IN_REALS, ".")
    if options["faithful"] and not unbiased:
        raise InvalidInput(
            Parameter("faithful"),
            " is for ",
            IN_REALS,
            ", or with ",
            given("unbiased", True),
            " for a secret n.",
        )
    if any(_is_given(options[name]) for name in ASSUMED):
        raise InvalidInput(
            Parameter(
                "max_bias",
                "max_bias, max_error, moment and symmetric",
                "--max-bias, --moment and --symmetric",
            ),
            " are for ",
            IN_REALS,
            "; with bounds a mean has no bias but that of clipping.",
        )
    return bounded_of("mean", domain, columns, **options)


def bounded_of(
    statistic: str,
    domain: Domain | NamedBounds | Reals | None,
    columns: Columns = None,
    **options: Any,
) -> Bounded:
    """A mean or a sum of bounded records; bounds by name take the order of the columns."""
    if isinstance(domain, Mapping) and columns is not None:
        domain = in_order(domain, columns)
    known = ("p", "weights", "missing", "clip", "population", "mechanism", "unbiased", "faithful")
    chosen = {name: options[name] for name in known if name in options}
    return Bounded.of(statistic, domain, **chosen)


def _is_given(option: Any) -> bool:
    return option is not None and option is not False


def _in_reals(domain: Reals, columns: Columns, options: dict[str, Any]) -> Unassuming | LowBias:
    mechanism, missing = options["mechanism"], options["missing"]
    common: dict[str, Any] = {
        "domain": domain,
        "weights": real_weights(options["weights"], domain.dim),
        "missing": reals_rule(
            missing, mechanism, named=columns is not None, faithful=options["faithful"]
        ),
        "mechanism": mechanism,
        "insist": options["insist"],
        "is_default": missing is None,
    }
    asked = any(_is_given(options[name]) for name in (*ASSUMED, "unbiased"))
    if asked or mechanism in LOW_BIAS:
        return _low_bias(domain, options, common)
    if options["clip"] is not None:
        raise InvalidInput("clip is for bounded domains; in Reals the ball is learnt privately.")
    return Unassuming(
        **common,
        p=_check.norm_order(options["p"]),
        faithful=options["faithful"],
        scale=options["scale"],
    )


def _low_bias(domain: Reals, options: dict[str, Any], common: dict[str, Any]) -> LowBias:
    if options["clip"] is not None or options["scale"] is not None:
        both = Parameter("scale", "clip and scale have", "--scale has")
        raise InvalidInput(both, " no use where the bias is bounded.")
    if _check.norm_order(options["p"]) != 2:
        raise InvalidInput("must be 2 where the bias is bounded", parameter="p")
    moment, max_bias = options["moment"], options["max_bias"]
    max_error = options["max_error"]
    limits = None if max_bias is None else largest_biases(max_bias, domain.dim)
    unbiased = options["unbiased"] or (limits is not None and not limits.any())
    symmetric = options["symmetric"] or options["mechanism"] == "symmetric"
    if options["faithful"] and common["mechanism"] is None:
        common["mechanism"] = "symmetric" if symmetric else "clipped-laplace"
    return LowBias(
        **common,
        moment=None if moment is None else assumed_moment(moment, domain.dim),
        limits=None if unbiased else limits,
        max_error=None if max_error is None else _check.positive("max_error", max_error),
        symmetric=symmetric,
        unbiased=unbiased,
        faithful=options["faithful"],
    )
