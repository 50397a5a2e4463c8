"""Arrow IPC files (.arrow, .feather version 2), of the file and of the stream format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from muhat.data.arrow import batch_of, fields_of
from muhat.data.base import Partition
from muhat.data.file import File, Format, Opening
from muhat.data.selection import Coders
from muhat.records.columns import Batch


class IpcFile(File):
    """One Arrow IPC file; record batches are units of work, a stream is one unit."""

    def __init__(self, path: Path, _: Opening) -> None:
        import pyarrow as pa

        super().__init__(path)
        self._is_stream = False
        with pa.OSFile(str(path)) as file:
            try:
                reader = pa.ipc.open_file(file)
                self._batch_count = reader.num_record_batches
            except pa.ArrowInvalid:
                file.seek(0)
                reader = pa.ipc.open_stream(file)
                self._is_stream, self._batch_count = True, 1
            self.fields = fields_of(reader.schema)

    def count_rows(self) -> int:
        """The length of every record batch; one column of it is decoded at most."""
        first = [0] if self.fields else []
        return sum(
            batch.num_rows
            for index in range(self._batch_count)
            for batch in self._record_batches(index, first)
        )

    def partitions(self, positions: Sequence[int], coders: Coders) -> list[Partition]:
        """Record batches in order."""
        share = self.size // max(self._batch_count, 1)
        return [
            self._partition(index, list(positions), coders, share)
            for index in range(self._batch_count)
        ]

    def _partition(self, index: int, positions: list[int], coders: Coders, size: int) -> Partition:
        included = sorted(positions)
        order = [included.index(position) for position in positions]

        def batches() -> Iterator[Batch]:
            for batch in self._record_batches(index, included):
                yield batch_of((batch.column(position) for position in order), coders)

        return Partition(size, batches)

    def _record_batches(self, index: int, included: list[int]) -> Iterator[Any]:
        import pyarrow as pa

        options = pa.ipc.IpcReadOptions(included_fields=included, use_threads=False)
        with pa.OSFile(str(self.path)) as file:
            if self._is_stream:
                yield from pa.ipc.open_stream(file, options=options)
            else:
                yield pa.ipc.open_file(file, options=options).get_batch(index)


IPC = Format((".arrow", ".feather", ".ipc"), IpcFile, (b"ARROW1", b"\xff\xff\xff\xff"))
