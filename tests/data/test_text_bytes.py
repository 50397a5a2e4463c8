"""Bytes of text files: compressed or not, in UTF-8 and nothing else."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pyarrow as pa
import pytest

import muhat as mh
from muhat.data import open_source
from muhat.data.text_file import COMPRESSIONS, open_bytes
from muhat.errors import InvalidInput, SourceFailed

COMPRESS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
}
TEXT = b"".join(b"%d,%d\n" % (number, number % 7) for number in range(20_000))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_compressed_bytes_can_be_read_from_anywhere(tmp_path: Path, compression: str) -> None:
    path = tmp_path / f"x{compression}"
    # Two archives one after another are one, as for the tools that make them.
    path.write_bytes(COMPRESS[compression](TEXT[:5000]) + COMPRESS[compression](TEXT[5000:]))
    with open_bytes(path, compression) as file:
        assert file.read(10) == TEXT[:10]
        file.seek(70_000)
        assert file.read(1 << 20) == TEXT[70_000:]
        assert file.read(10) == b""
        file.seek(4990)
        assert file.read(20) == TEXT[4990:5010]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_truncated_archive_is_no_shorter_table(tmp_path: Path, compression: str) -> None:
    path = tmp_path / f"x.csv{compression}"
    whole = COMPRESS[compression](b"a,b\n" + TEXT)
    path.write_bytes(whole)
    assert open_source(path, ["b"], 1).rows() == 20_000
    path.write_bytes(whole[:-5])
    with pytest.raises((InvalidInput, SourceFailed)):
        open_source(path, ["b"], 1).rows()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.jsonl"])
def test_other_encodings_are_refused_by_name(tmp_path: Path, name: str, encoding: str) -> None:
    path = tmp_path / name
    data = "wage,age\n1,2\n".encode(encoding)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(InvalidInput, match="UTF-32" if "32" in encoding else "UTF-16"):
        mh.mean(path, domain={"age": (0, 9)}, privacy=mh.ZCDP(rho=1))
