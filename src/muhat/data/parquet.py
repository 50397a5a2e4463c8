"""Parquet files: a few row groups are a unit of work, decoded batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from muhat.data.arrow import batch_of, fields_of
from muhat.data.base import Partition
from muhat.data.coding import Coder
from muhat.data.file import File, Format, Opening
from muhat.data.selection import Coders, Field, places
from muhat.records.columns import Batch

_PARTITION_BYTES = 1 << 24
_BATCH_VALUES = 1 << 20
_MOST_BATCH_ROWS = 1 << 16
_READ_BYTES = 1 << 16
"""So much of a column is read at a time: what is in the cache is decoded from there."""

_INDEX_BYTES = 4
_TEXT = ("string", "large_string", "binary", "large_binary")


class ParquetFile(File):
    """One Parquet file; its footer is read once and kept."""

    def __init__(self, path: Path, _: Opening) -> None:
        import pyarrow.parquet as pq

        super().__init__(path)
        with pq.ParquetFile(path) as file:
            self._metadata = file.metadata
            self.fields = fields_of(file.schema_arrow)
        self.known_rows = self._metadata.num_rows

    def count_rows(self) -> int:
        """From the footer."""
        return int(self._metadata.num_rows)

    def partitions(self, positions: Sequence[int], coders: Coders) -> list[Partition]:
        """Row groups in order, small ones together."""
        parts: list[Partition] = []
        groups: list[int] = []
        size = 0
        for group in range(self._metadata.num_row_groups):
            groups.append(group)
            size += self._metadata.row_group(group).total_byte_size
            if size >= _PARTITION_BYTES:
                parts.append(self._partition(groups, positions, coders, size))
                groups, size = [], 0
        if groups:
            parts.append(self._partition(groups, positions, coders, size))
        return parts

    def _partition(
        self, groups: list[int], positions: Sequence[int], coders: Coders, size: int
    ) -> Partition:
        return Partition(size, lambda: self._batches(groups, positions, coders))

    def _batches(
        self, groups: list[int], positions: Sequence[int], coders: Coders
    ) -> Iterator[Batch]:
        import pyarrow.parquet as pq

        keys = list(places(field.name for field in self.fields))
        wanted = [keys[position] for position in positions]
        names = list(dict.fromkeys(name for name, _ in wanted))
        width = sum(max(self.fields[position].width, 1) for position in positions)
        rows = max(min(_BATCH_VALUES // max(width, 1), _MOST_BATCH_ROWS), 1)
        options: dict[str, Any] = {"use_threads": False, "columns": names, "batch_size": rows}
        labels = [
            self.fields[position].name
            for position, coder in zip(positions, coders, strict=True)
            if coder is not None and self._repeats(self.fields[position], groups)
        ]
        coders = [each.remembering() if isinstance(each, Coder) else each for each in coders]
        with pq.ParquetFile(
            self.path,
            metadata=self._metadata,
            pre_buffer=False,
            buffer_size=_READ_BYTES,
            read_dictionary=labels,
        ) as file:
            for part in file.iter_batches(row_groups=groups, **options):
                # Columns are asked for by name, and those that share a name come together.
                found = places(part.schema.names)
                yield batch_of((part.column(found[key]) for key in wanted), coders)

    def _repeats(self, field: Field, groups: list[int]) -> bool:
        """Whether a column is text of which the file has every value but once, in a dictionary.

        Then values are looked up once; what is written out a row takes more room than an index.
        """
        if field.type not in _TEXT:
            return False
        chunks = [self._metadata.row_group(group) for group in groups]
        sizes = [
            chunk.column(place).total_uncompressed_size
            for chunk in chunks
            for place in range(chunk.num_columns)
            if chunk.column(place).path_in_schema == field.name
        ]
        return bool(sum(sizes) <= _INDEX_BYTES * sum(chunk.num_rows for chunk in chunks))


PARQUET = Format((".parquet", ".pq"), ParquetFile, (b"PAR1",))
