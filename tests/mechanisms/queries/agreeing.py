"""How far tables are from being those of one histogram."""

from __future__ import annotations

import numpy as np

from muhat.mechanisms.queries.marginal_projection import _Rows


def disagreement(workload, answers) -> float:
    """The largest difference, in records, between what two tables say about the same cell."""
    rows = _Rows(workload)
    seen = {}
    for axes, table in zip(rows.family.sets, rows.tables(np.asarray(answers)), strict=True):
        for subset, margin in rows.family.margins(axes, table).items():
            low, high = seen.get(subset, (margin, margin))
            seen[subset] = np.minimum(low, margin), np.maximum(high, margin)
    return max(float((high - low).max()) for low, high in seen.values())
