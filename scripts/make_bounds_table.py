"""Writes the table of certificates into docs/theory.md: before and now, one column of records.

python scripts/make_bounds_table.py
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import muhat as mh
from muhat.privacy import Privacy

PAGE = Path(__file__).parent.parent / "docs" / "theory.md"
BLOCK = re.compile(r"(<!-- bounds: start -->\n).*?(<!-- bounds: end -->)", flags=re.S)
INTRODUCTION = (
    "Certificates of the mean of 1000 records in an interval (n public), and of a count. *Before* "
    "is the noise that was used with the bounds on unbiased mechanisms alone (by χ²); written by "
    "`python scripts/make_bounds_table.py`:"
)


def main() -> None:
    text = PAGE.read_text("utf-8")
    PAGE.write_text(BLOCK.sub(lambda m: f"{m[1]}{table()}\n{m[2]}", text), "utf-8")


def table() -> str:
    """A line a promise."""
    lines = [
        INTRODUCTION,
        "",
        "| promise | before | mean: additive noise | mean: any mechanism | count: any mechanism |",
        "|---|---|---|---|---|",
    ]
    for loss in (0.1, 0.5, 1.0, 2.0):
        laplace = 2 * math.sqrt(2) * math.sinh(loss / 2) / loss
        normal = math.sqrt(math.expm1(loss**2)) / loss
        concentrated = math.sqrt(math.expm1(2 * loss) / (2 * loss))
        lines += [
            line(mh.PureDP(epsilon=loss), laplace),
            line(mh.GDP(mu=loss), normal),
            line(mh.ZCDP(rho=loss), concentrated),
        ]
    return "\n".join(lines)


def line(privacy: Privacy, before: float) -> str:
    plan = mh.plan_mean(domain=mh.Box([0.0], [1.0]), n=1000, privacy=privacy, missing="none")
    mean, count = plan.certificate, mh.plan_count(privacy=privacy).certificate
    assert mean is not None
    assert count is not None
    numbers = before, mean.ratio_to("additive", "every"), mean.ratio_any, count.ratio_any
    cells = ["–" if number is None else f"{number:.3f}" for number in numbers]
    return f"| {privacy.describe()} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
