"""The fingerprint of a plan: what an account's entry and a release name it by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest_of(fields: Mapping[str, Any]) -> str:
    """SHA-256 of everything that decides a release, written in one way only."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
