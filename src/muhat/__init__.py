"""muhat: private means with the least noise, exact arithmetic and a certificate.

The public names, nothing else. Each is loaded when first used (PEP 562), so `import muhat`
costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "MuhatError": "muhat.errors",
    "InvalidInput": "muhat.errors",
    "BudgetExceeded": "muhat.errors",
    "Impossible": "muhat.errors",
    "DataChanged": "muhat.errors",
    "SourceFailed": "muhat.errors",
    "PureDP": "muhat.privacy",
    "ApproxDP": "muhat.privacy",
    "ZCDP": "muhat.privacy",
    "GDP": "muhat.privacy",
    "RDP": "muhat.privacy",
    "Neighbors": "muhat.privacy",
    "shuffled": "muhat.privacy",
    "amplified": "muhat.privacy.amplification",
    "csv_data": "muhat.data.files",
    "Ball": "muhat.domains",
    "Box": "muhat.domains",
    "Ellipsoid": "muhat.domains",
    "LpBall": "muhat.domains",
    "MomentTensor": "muhat.domains",
    "Points": "muhat.domains",
    "Reals": "muhat.domains",
    "SchattenBall": "muhat.domains",
    "Simplex": "muhat.domains",
    "Zonotope": "muhat.domains",
    "gamma": "muhat.ellipsoids",
    "smallest_ellipsoid": "muhat.ellipsoids",
    "Certificate": "muhat.release",
    "LowerBound": "muhat.bounds",
    "Head": "muhat.ledger",
    "Ledger": "muhat.ledger",
    "Plan": "muhat.planning",
    "UnboundedPlan": "muhat.planning",
    "LowBiasPlan": "muhat.planning.low_bias_plan",
    "SmoothPlan": "muhat.planning.smooth",
    "UnknownNumberPlan": "muhat.planning.unknown_number",
    "GroupRelease": "muhat.release.group_release",
    "QueryPlan": "muhat.planning.query_plan",
    "QueryRelease": "muhat.release.query_release",
    "factorize": "muhat.workloads.factorize",
    "plan_queries": "muhat.planning.queries",
    "Release": "muhat.release",
    "plan_count": "muhat.planning",
    "plan_mean": "muhat.planning",
    "plan_quantile": "muhat.planning.quantiles",
    "plan_sum": "muhat.planning",
    "privacy_for": "muhat.planning",
    "QuantilePlan": "muhat.planning.quantile_plan",
    "QuantileRelease": "muhat.release.quantile_release",
    "quantile": "muhat.planning.quantiles",
    "count": "muhat.planning",
    "mean": "muhat.planning",
    "sum": "muhat.planning",
}

_ROOMS = {"bounds", "protocols", "research", "stream", "workloads"}

__all__ = sorted([*_HOMES, *_ROOMS])


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return importlib.import_module(f"muhat.{name}")
    raise AttributeError(f"module 'muhat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
