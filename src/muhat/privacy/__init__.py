"""What is promised: kinds of differential privacy, their relations and composition."""

from __future__ import annotations

# Kinds are listed to users in the order of these imports.
# isort: off
from muhat.privacy.pure import PureDP
from muhat.privacy.approximate import ApproxDP, with_delta
from muhat.privacy.concentrated import ZCDP
from muhat.privacy.approximate_concentrated import ApproxZCDP
from muhat.privacy.gaussian import GDP
from muhat.privacy.renyi import RDP
# isort: on

from muhat.privacy.composition import Filter, adding_up, compose
from muhat.privacy.conversions import for_groups, gaussian_mu_squared, pure_within
from muhat.privacy.gaussian_curve import gaussian_delta, gaussian_epsilon, gaussian_mu
from muhat.privacy.neighbors import Neighbors
from muhat.privacy.promise import KINDS, Privacy, from_dict, to_dict
from muhat.privacy.registry import charged_in, check_promise, currency_kind, flags, from_flags
from muhat.privacy.rounding import as_typed
from muhat.privacy.shuffling import shuffled
from muhat.privacy.worth import cautions

__all__ = [
    "GDP",
    "KINDS",
    "RDP",
    "ZCDP",
    "ApproxDP",
    "ApproxZCDP",
    "Filter",
    "Neighbors",
    "Privacy",
    "PureDP",
    "adding_up",
    "as_typed",
    "cautions",
    "charged_in",
    "check_promise",
    "compose",
    "currency_kind",
    "flags",
    "for_groups",
    "from_dict",
    "from_flags",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_mu_squared",
    "pure_within",
    "shuffled",
    "to_dict",
    "with_delta",
]
