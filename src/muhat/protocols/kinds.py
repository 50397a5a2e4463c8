"""From the kinds that descriptions name to the classes that read them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from muhat import _check

if TYPE_CHECKING:
    from muhat.protocols.protocol import Estimator
    from muhat.protocols.randomizers.randomizer import Randomizer

_RANDOMIZERS = {
    "gaussian": ("randomizers.gaussian_randomizer", "GaussianRandomizer"),
    "cap": ("randomizers.cap_randomizer", "CapRandomizer"),
    "ranges": ("randomizers.range_randomizer", "RangeRandomizer"),
    "shares": ("randomizers.share_randomizer", "ShareRandomizer"),
    "joint": ("randomizers.joint_randomizer", "JointRandomizer"),
}

_ESTIMATORS = {
    "local-mean": ("means.local_mean", "LocalMean"),
    "local-chain": ("means.local_chain", "LocalChain"),
    "local-three-rounds": ("means.local_three_rounds", "LocalThreeRounds"),
    "shuffle-mean": ("means.shuffle_mean", "ShuffleMean"),
    "shuffle-chain": ("means.shuffle_chain", "ShuffleChain"),
    "local-quantile": ("counts.local_quantiles", "LocalQuantile"),
    "shuffle-quantile": ("counts.shuffle_quantiles", "ShuffleQuantile"),
    "local-ranges": ("counts.local_range_counts", "LocalRanges"),
    "shuffle-ranges": ("counts.shuffle_range_counts", "ShuffleRanges"),
}


def randomizer_of(fields: dict[str, Any]) -> Randomizer:
    """The randomizer that its kind and `to_dict` described."""
    made: Randomizer = _class_of("randomizer", _RANDOMIZERS, fields).from_dict(fields)
    return made


def estimator_of(fields: dict[str, Any]) -> Estimator:
    """The estimator that its kind and `to_dict` described."""
    made: Estimator = _class_of("estimator", _ESTIMATORS, fields).from_dict(fields)
    return made


def _class_of(what: str, homes: dict[str, tuple[str, str]], fields: dict[str, Any]) -> Any:
    module, name = homes[_check.one_of(f"the kind of {what}", fields.pop("kind"), homes)]
    return getattr(importlib.import_module(f"muhat.protocols.{module}"), name)
