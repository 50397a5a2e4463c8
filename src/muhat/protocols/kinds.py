"""From the kinds that descriptions name to the classes that read them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from muhat import _check

if TYPE_CHECKING:
    from muhat.protocols.protocol import Estimator
    from muhat.protocols.randomizer import Randomizer

_RANDOMIZERS = {
    "gaussian": ("gaussian_randomizer", "GaussianRandomizer"),
    "cap": ("cap_randomizer", "CapRandomizer"),
    "ranges": ("range_randomizer", "RangeRandomizer"),
    "shares": ("share_randomizer", "ShareRandomizer"),
    "joint": ("joint_randomizer", "JointRandomizer"),
}

_ESTIMATORS = {
    "local-mean": ("local_mean", "LocalMean"),
    "local-chain": ("local_chain", "LocalChain"),
    "local-three-rounds": ("local_three_rounds", "LocalThreeRounds"),
    "shuffle-mean": ("shuffle_mean", "ShuffleMean"),
    "shuffle-chain": ("shuffle_chain", "ShuffleChain"),
    "local-quantile": ("local_quantiles", "LocalQuantile"),
    "shuffle-quantile": ("shuffle_quantiles", "ShuffleQuantile"),
    "local-ranges": ("local_range_counts", "LocalRanges"),
    "shuffle-ranges": ("shuffle_range_counts", "ShuffleRanges"),
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
