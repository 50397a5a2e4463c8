"""muhat itself, sent to the executors: they run the very code of the driver.

Executors need Python, numpy and pyarrow. That they have them, and that muhat arrives, is tried out
once in a session on rows that are nobody's, before anything is charged.
"""

from __future__ import annotations

import hashlib
import tempfile
import weakref
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import muhat
from muhat.data.spark_plan import is_connect
from muhat.errors import InvalidInput

_PROBED: weakref.WeakSet[Any] = weakref.WeakSet()
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class _Kept:
    """The archive, and the folder that lasts as long: executors that start late fetch it then."""

    folder: tempfile.TemporaryDirectory[str]
    archive: Path


def require_running(session: Any) -> None:
    """InvalidInput for a session that has ended: after a charge it is too late to find out."""
    context = getattr(session, "_sc", None)
    try:
        if context is None:
            ended = bool(session.is_stopped)
        else:
            ended = context._jsc is None or bool(context._jsc.sc().isStopped())
    except Exception:
        ended = True
    if ended:
        raise InvalidInput("the Spark session of the data has ended: read them in a new one.")


def ship(frame: Any) -> None:
    """Have the executors of a frame's session run muhat, or InvalidInput; once a session."""
    session = frame.sparkSession
    if session in _PROBED:
        return
    archive = str(_kept().archive)
    arrived = False
    try:
        if is_connect(frame):
            session.addArtifacts(archive, pyfile=True)
        else:
            session.sparkContext.addPyFile(archive)
        arrived = _probe(session)
    except Exception:
        arrived = False
    if not arrived:
        raise InvalidInput(
            "muhat does not run on Spark's executors: they need the driver's version of Python, "
            "numpy 2 and pyarrow. Name their interpreter in PYSPARK_PYTHON."
        )
    _PROBED.add(session)


@cache
def _kept() -> _Kept:
    folder = tempfile.TemporaryDirectory(prefix="muhat-")
    return _Kept(folder, packed_package(Path(folder.name)))


def packed_package(folder: Path) -> Path:
    """An archive of muhat's modules, named after what is in it."""
    root = Path(muhat.__file__).parent
    # A room without an __init__.py is a package on a disk, but not in an archive.
    rooms = {module.parent / "__init__.py" for module in root.rglob("*.py")}
    modules = sorted({*rooms, *root.rglob("*.py")})
    digest = hashlib.sha256()
    packed = folder / "muhat.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for module in modules:
            name = f"muhat/{module.relative_to(root).as_posix()}"
            text = module.read_bytes() if module.exists() else b""
            digest.update(f"{name}:{len(text)}:".encode() + text)
            archive.writestr(zipfile.ZipInfo(name, _DATE), text, zipfile.ZIP_DEFLATED)
    return packed.rename(folder / f"muhat-{digest.hexdigest()[:16]}.zip")


def _probe(session: Any) -> bool:
    """Whether an executor imports what a pass needs, and adds two numbers up."""

    def probe(batches: Iterator[Any]) -> Iterator[Any]:
        import numpy as np
        import pyarrow as pa

        from muhat.data.spark_worker import vectors

        rows = sum(batch.num_rows for batch in batches)
        ready = int(np.__version__.partition(".")[0]) >= 2 and callable(vectors)
        yield pa.RecordBatch.from_arrays([pa.array([rows if ready else 0])], names=["rows"])

    found = session.range(2).mapInArrow(probe, "rows bigint").collect()
    return bool(sum(row.rows for row in found) == 2)
