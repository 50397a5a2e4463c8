"""What people make of a release: one table, dataframes, a picture, a page to publish."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from numpy.typing import NDArray

from muhat.privacy import Neighbors, Privacy
from muhat.release.answer import Answer
from muhat.release.panels import panels_of
from muhat.release.spent import Spent
from muhat.release.tables import arrow_table, combined, pandas_frame, polars_frame

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.figure import Figure


class Outputs:
    """Tables, pictures and pages of the answers of a release."""

    answers: tuple[Answer, ...]
    privacy: Privacy
    neighbors: Neighbors
    plan_digest: str
    ledger_head: dict[str, Any] | None
    unit: str | None
    names: tuple[str, ...]
    shares: tuple[Spent, ...]

    def named(self) -> list[tuple[str, Answer]]:
        """Every part with its name; the only one may have no other name than what it is."""
        headings = [each.heading for each in self.answers]
        return list(zip(self.names or headings, self.answers, strict=True))

    @property
    def title(self) -> str:
        """What was released, in a few words."""
        if len(self.answers) > 1:
            return f"{len(self.answers)} private statistics"
        return f"Private {self.answers[0].heading}"

    def table(self, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """A tidy table, a line a number: a dict of columns, each an array of the same length.

        First what the number is of, then `value`, what is known of its error, the interval for the
        records (`lower`, `upper`) and, where there is one, that for the population they were drawn
        from. Several parts are below each other, and `statistic` has their names.

        >>> import numpy as np, muhat as mh
        >>> ages = {"age": np.arange(20.0, 60.0)}
        >>> release = mh.mean(ages, domain={"age": (0, 90)}, privacy=mh.ZCDP(rho=0.5))
        >>> list(release.table())[:5]
        ['column', 'value', 'standard_error', 'lower', 'upper']
        """
        if len(self.answers) == 1:
            return self.answers[0].table(confidence)
        return combined(self.named(), confidence)

    def to_pandas(self, confidence: float = 0.95) -> pandas.DataFrame:
        """`table()` as a pandas DataFrame."""
        return pandas_frame(self.table(confidence))

    def to_polars(self, confidence: float = 0.95) -> polars.DataFrame:
        """`table()` as a polars DataFrame; what is not known is null."""
        frame: polars.DataFrame = polars_frame(self.table(confidence))
        return frame

    def to_arrow(self, confidence: float = 0.95) -> pyarrow.Table:
        """`table()` as a pyarrow Table; what is not known is null."""
        return arrow_table(self.table(confidence))

    def plot(self) -> Figure:
        """The numbers with their intervals as a picture (needs the extra `plot`).

        Counts and sums are bars, all else are points. The thick line is the interval for the
        records, noise alone, and the thin one that for the population. A statistic has a panel, or
        several where its numbers have unlike units. Returns a matplotlib Figure.
        """
        from muhat.release.picture import release_figure

        panels = [panel for name, answer in self.named() for panel in panels_of(name, answer)]
        return release_figure(panels, f"{self.title} · {self.privacy.describe()}")

    @overload
    def report(
        self, path: None = None, *, title: str | None = None, specification: str | None = None
    ) -> str: ...

    @overload
    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        specification: str | None = None,
    ) -> Path: ...

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        specification: str | None = None,
    ) -> str | Path:
        """One page to publish: what was released, with pictures, what it cost, how to read it.

        HTML that needs neither network nor script, for light and dark, telephones and desks.
        Written to `path`, whose own path is returned, it replaces an earlier report and no other
        file; without one the text is returned. `specification` is shown as it is, such as the TOML
        that the release was made from.
        """
        from muhat.release.report import report_page, write_report

        page = report_page(self, title=title, specification=specification)
        return page if path is None else write_report(path, page)
