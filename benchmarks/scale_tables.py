"""Tables of drawn records as Parquet, written row group by row group: memory stays flat."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_GROUP_VALUES = 1 << 20
_FEWEST_GROUP_ROWS = 1 << 12
"""Row groups of at least 8 MB; of wide records at most 128 MB, as Spark writes them."""


@dataclass(frozen=True)
class Shape:
    """How many records of how many numbers, in how many files of about the same length.

    The numbers of a record are columns of their own, or one column of lists.
    """

    rows: int
    dim: int
    files: int
    lists: bool = False

    @property
    def name(self) -> str:
        """A folder's name."""
        return f"{self.rows}x{self.dim}in{self.files}{'lists' if self.lists else ''}"


def write(parent: Path, shape: Shape) -> Path:
    """The folder of a table's files, which is made unless it is there."""
    folder = parent / shape.name
    if not folder.exists():
        folder.mkdir()
        lengths = [
            shape.rows * (place + 1) // shape.files - shape.rows * place // shape.files
            for place in range(shape.files)
        ]
        for place, rows in enumerate(lengths):
            _write_file(folder / f"{place:05d}.parquet", shape, rows, place)
    return folder


def _write_file(path: Path, shape: Shape, rows: int, seed: int) -> None:
    import pyarrow.parquet as pq

    draw = np.random.default_rng([shape.dim, seed])
    a_group = max(_GROUP_VALUES // shape.dim, _FEWEST_GROUP_ROWS)
    # Numbers that are drawn have no repeats to be kept in a dictionary, and nothing to compress.
    options: dict[str, Any] = {"use_dictionary": False, "compression": "none"}
    with pq.ParquetWriter(path, _table(shape, np.zeros((0, shape.dim))).schema, **options) as file:
        for start in range(0, rows, a_group):
            values = draw.uniform(-1, 1, (min(a_group, rows - start), shape.dim))
            file.write_table(_table(shape, values), row_group_size=a_group)


def _table(shape: Shape, values: np.ndarray[Any, Any]) -> Any:
    """Records of shape (rows, d) as an Arrow table."""
    import pyarrow as pa

    if shape.lists:
        flat = pa.array(values.reshape(-1))
        return pa.table({"x": pa.FixedSizeListArray.from_arrays(flat, shape.dim)})
    columns = np.ascontiguousarray(values.T)
    return pa.table({f"x{place}": column for place, column in enumerate(columns)})
