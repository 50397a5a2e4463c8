"""From a source of records to exact integer sums: sources, the one kernel, the engine."""

from muhat.data.base import Source
from muhat.data.engine import Sums, exact_sums
from muhat.data.sources import open_source

__all__ = ["Source", "Sums", "exact_sums", "open_source"]
