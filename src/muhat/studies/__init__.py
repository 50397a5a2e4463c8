"""Studies: the papers' experiments, and what they compare with. Not for use on people's data.

Data are drawn from seeds, and the baselines are idealised: floats and a seeded generator's noise,
which is private on paper only. Nothing below this room imports it.

`muhat study` runs them. What a study is, and how to add one: `muhat.studies.study`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from muhat import _check
from muhat.errors import InvalidInput
from muhat.studies.study import Study

MODULES = {
    "huang-gaussian": "muhat.studies.huang_gaussian",
    "huang-rate": "muhat.studies.huang_rate",
    "huang-covariance": "muhat.studies.huang_covariance",
    "huang-digits": "muhat.studies.huang_digits",
    "huang-quantiles": "muhat.studies.huang_quantiles",
    "huang-local": "muhat.studies.huang_local",
    "kamath": "muhat.studies.kamath",
    "kamath-symmetric": "muhat.studies.kamath_symmetric",
    "nikolov-tang": "muhat.studies.nikolov_tang",
    "zou-liu-upadhyay": "muhat.studies.zou_liu_upadhyay",
    "blog": "muhat.studies.blog",
    "errata": "muhat.studies.errata",
    "peers": "muhat.studies.peers",
}
"""Every study by the name that is typed, and the module whose STUDY it is, in order."""


def find(name: str) -> Study:
    """The study of this name."""
    if name not in MODULES:
        hint = _check.did_you_mean(name, MODULES)
        raise InvalidInput(f"no study is called {name!r:.40}; `muhat study list` has them.{hint}")
    study = importlib.import_module(MODULES[name]).STUDY
    assert isinstance(study, Study)
    return study


def studies() -> Iterator[Study]:
    """All of them, in order."""
    return (find(name) for name in MODULES)
