"""What is promised: four kinds of differential privacy, their relations and composition."""

from __future__ import annotations

from muhat.privacy.composition import Filter, compose
from muhat.privacy.conversions import pure_within
from muhat.privacy.gaussian_curve import gaussian_delta, gaussian_epsilon, gaussian_mu
from muhat.privacy.groups import for_groups
from muhat.privacy.promises import (
    GDP,
    KINDS,
    ZCDP,
    ApproxDP,
    Neighbors,
    Privacy,
    PureDP,
    from_dict,
    gaussian_mu_squared,
    to_dict,
)
from muhat.privacy.rounding import as_typed
from muhat.privacy.shuffling import shuffled
from muhat.privacy.worth import cautions

__all__ = [
    "GDP",
    "KINDS",
    "ZCDP",
    "ApproxDP",
    "Filter",
    "Neighbors",
    "Privacy",
    "PureDP",
    "as_typed",
    "cautions",
    "compose",
    "for_groups",
    "from_dict",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_mu_squared",
    "pure_within",
    "shuffled",
    "to_dict",
]
