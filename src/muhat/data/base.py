"""What every source of records offers, whatever it is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from muhat.data.columns import Batch


@dataclass(frozen=True)
class Partition:
    """An independent unit of work: its size in bytes, and a way to read it, again and again."""

    size: int
    batches: Callable[[], Iterator[Batch]]


class Source(ABC):
    """Records that can be read more than once; made from arguments and metadata alone.

    `columns` names every coordinate in order, `types` says what each is stored as.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def dim(self) -> int:
        """The number of coordinates a record has."""
        return len(self.columns)

    @property
    @abstractmethod
    def known_rows(self) -> int | None:
        """The number of records if it is known without another look, else None."""

    @property
    def bytes_a_thread(self) -> int:
        """How much work pays for one more thread."""
        return 1 << 27

    @abstractmethod
    def rows(self) -> int:
        """How many records there are: from metadata, or by counting lines."""

    @abstractmethod
    def partitions(self) -> Sequence[Partition]:
        """The units of work; together every record once."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise DataChanged if the data are not those that were opened."""
