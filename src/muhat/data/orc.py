"""ORC files: a stripe is a unit of work, and only the columns asked for are decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from muhat.data.arrow import batch_of, fields_of
from muhat.data.base import Partition
from muhat.data.file import File, Format, Opening
from muhat.data.selection import Coders, places
from muhat.records.columns import Batch


class OrcFile(File):
    """One ORC file; the number of its records stands in its footer."""

    def __init__(self, path: Path, _: Opening) -> None:
        from pyarrow.orc import ORCFile

        super().__init__(path)
        with path.open("rb") as opened:
            file = ORCFile(opened)
            self.fields = fields_of(file.schema)
            self._stripes = file.nstripes
            self.known_rows = file.nrows

    def count_rows(self) -> int:
        """From the footer."""
        return self.known_rows or 0

    def partitions(self, positions: Sequence[int], coders: Coders) -> list[Partition]:
        """Stripes in order."""
        share = self.size // max(self._stripes, 1)
        return [
            self._partition(stripe, list(positions), coders, share)
            for stripe in range(self._stripes)
        ]

    def _partition(self, stripe: int, positions: list[int], coders: Coders, size: int) -> Partition:
        def batches() -> Iterator[Batch]:
            from pyarrow.orc import ORCFile

            keys = list(places(field.name for field in self.fields))
            wanted = [keys[position] for position in positions]
            with self.path.open("rb") as opened:
                part = ORCFile(opened).read_stripe(stripe, columns=self._chosen(wanted))
                found = places(part.schema.names)
                yield batch_of((part.column(found[key]) for key in wanted), coders)

        return Partition(size, batches)

    def _chosen(self, wanted: list[tuple[str, int]]) -> list[str] | None:
        """The names to read, or all columns where a name may be that of several, or of a part."""
        names = [field.name for field in self.fields]
        if len(set(names)) < len(names) or any("." in name for name, _ in wanted):
            return None
        return [name for name, _ in wanted]


# No marks: the letters that such files begin with, ORC, may begin the header of a CSV file.
ORC = Format((".orc",), OrcFile)
