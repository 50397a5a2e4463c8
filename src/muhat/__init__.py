"""muhat: private means with the least noise, exact arithmetic and a certificate.

The public names, nothing else. Each is loaded when first used (PEP 562), so `import muhat`
costs next to nothing; type checkers see all of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from muhat import bounds as bounds
    from muhat import protocols as protocols
    from muhat import research as research
    from muhat import stream as stream
    from muhat import workloads as workloads
    from muhat.bounds import LowerBound as LowerBound
    from muhat.data.files import csv_data as csv_data
    from muhat.domains import Ball as Ball
    from muhat.domains import Box as Box
    from muhat.domains import Choices as Choices
    from muhat.domains import Ellipsoid as Ellipsoid
    from muhat.domains import LpBall as LpBall
    from muhat.domains import MomentTensor as MomentTensor
    from muhat.domains import Points as Points
    from muhat.domains import Reals as Reals
    from muhat.domains import SchattenBall as SchattenBall
    from muhat.domains import Simplex as Simplex
    from muhat.domains import Zonotope as Zonotope
    from muhat.ellipsoids import gamma as gamma
    from muhat.ellipsoids import smallest_ellipsoid as smallest_ellipsoid
    from muhat.errors import BudgetExceeded as BudgetExceeded
    from muhat.errors import DataChanged as DataChanged
    from muhat.errors import Impossible as Impossible
    from muhat.errors import InvalidInput as InvalidInput
    from muhat.errors import MuhatError as MuhatError
    from muhat.errors import SourceFailed as SourceFailed
    from muhat.ledger import Head as Head
    from muhat.ledger import Ledger as Ledger
    from muhat.planning import Plan as Plan
    from muhat.planning import count as count
    from muhat.planning import mean as mean
    from muhat.planning import plan_count as plan_count
    from muhat.planning import plan_mean as plan_mean
    from muhat.planning import plan_sum as plan_sum
    from muhat.planning import sum as sum
    from muhat.planning.quantiles import plan_quantile as plan_quantile
    from muhat.planning.quantiles import quantile as quantile
    from muhat.planning.queries import plan_queries as plan_queries
    from muhat.planning.several import plan as plan
    from muhat.planning.targeting import privacy_for as privacy_for
    from muhat.privacy import GDP as GDP
    from muhat.privacy import RDP as RDP
    from muhat.privacy import ZCDP as ZCDP
    from muhat.privacy import ApproxDP as ApproxDP
    from muhat.privacy import ApproxZCDP as ApproxZCDP
    from muhat.privacy import Neighbors as Neighbors
    from muhat.privacy import PureDP as PureDP
    from muhat.privacy import shuffled as shuffled
    from muhat.privacy.amplification import amplified as amplified
    from muhat.release import Certificate as Certificate
    from muhat.release import Release as Release
    from muhat.statistics.asked import Correlation as Correlation
    from muhat.statistics.asked import Count as Count
    from muhat.statistics.asked import Covariance as Covariance
    from muhat.statistics.asked import Mean as Mean
    from muhat.statistics.asked import Quantile as Quantile
    from muhat.statistics.asked import Queries as Queries
    from muhat.statistics.asked import Regression as Regression
    from muhat.statistics.asked import StandardDeviation as StandardDeviation
    from muhat.statistics.asked import Sum as Sum
    from muhat.statistics.asked import Variance as Variance
    from muhat.statistics.schema import Bins as Bins
    from muhat.statistics.schema import Schema as Schema
    from muhat.workloads.factorize import factorize as factorize

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
    "ApproxZCDP": "muhat.privacy",
    "GDP": "muhat.privacy",
    "RDP": "muhat.privacy",
    "Neighbors": "muhat.privacy",
    "shuffled": "muhat.privacy",
    "amplified": "muhat.privacy.amplification",
    "csv_data": "muhat.data.files",
    "Ball": "muhat.domains",
    "Box": "muhat.domains",
    "Choices": "muhat.domains",
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
    "factorize": "muhat.workloads.factorize",
    "plan_queries": "muhat.planning.queries",
    "Release": "muhat.release",
    "plan_count": "muhat.planning",
    "plan_mean": "muhat.planning",
    "plan_quantile": "muhat.planning.quantiles",
    "plan_sum": "muhat.planning",
    "plan": "muhat.planning.several",
    "privacy_for": "muhat.planning.targeting",
    "quantile": "muhat.planning.quantiles",
    "count": "muhat.planning",
    "mean": "muhat.planning",
    "sum": "muhat.planning",
    "Bins": "muhat.statistics.schema",
    "Schema": "muhat.statistics.schema",
    "Correlation": "muhat.statistics.asked",
    "Count": "muhat.statistics.asked",
    "Covariance": "muhat.statistics.asked",
    "Mean": "muhat.statistics.asked",
    "Quantile": "muhat.statistics.asked",
    "Queries": "muhat.statistics.asked",
    "Regression": "muhat.statistics.asked",
    "StandardDeviation": "muhat.statistics.asked",
    "Sum": "muhat.statistics.asked",
    "Variance": "muhat.statistics.asked",
}

_ROOMS = {"bounds", "protocols", "research", "stream", "workloads"}

__all__ = sorted([*_HOMES, *_ROOMS])

if not TYPE_CHECKING:  # a checker that saw this would take every name for one of muhat

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
