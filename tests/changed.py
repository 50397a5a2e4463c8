"""Releases of one answer with another field, as no mechanism would make them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import muhat as mh


def changed(release: mh.Release, **fields: Any) -> mh.Release:
    """The same release, but for these fields of its answer."""
    (answer,) = release.answers
    return replace(release, answers=(replace(answer, **fields),))
