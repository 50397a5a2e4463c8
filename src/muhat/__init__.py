"""muhat: private means with the least noise, exact arithmetic and a certificate.

The public names, nothing else. Each is loaded when first used (PEP 562), so `import muhat`
costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "InvalidInput": "muhat.errors",
    "BudgetExceeded": "muhat.errors",
    "Impossible": "muhat.errors",
    "DataChanged": "muhat.errors",
    "SourceFailed": "muhat.errors",
    "PureDP": "muhat.privacy",
    "ApproxDP": "muhat.privacy",
    "ZCDP": "muhat.privacy",
    "GDP": "muhat.privacy",
    "Neighbors": "muhat.privacy",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'muhat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
