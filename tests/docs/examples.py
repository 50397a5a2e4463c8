"""The examples of a page, run in the order in which they stand, in one folder and one Python.

Python: after `# →` stands what an expression is, as `str` gives it, or a number up to its digits.
TOML: kept in the file that its first line names.
Console: `$ muhat …` and what it prints, or its error; `> file` keeps it. In a line with an interval
(`1 … 2`) or a count of records every number is noise and is masked; so are times and
digests of an account.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner

from muhat.cli import main

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.S | re.M)
SHOWN = re.compile(r"#\s*→\s*(.*?)\s*$")


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, text) of every fenced block."""
    return BLOCK.findall(page)


def differences(page: str, folder: Path) -> Iterator[str]:
    """Run everything; yield what a page says and a program does not."""
    space: dict[str, object] = {}
    for language, text in blocks(page):
        if language == "python":
            yield from _python(text, space)
        elif language == "console":
            yield from _console(text, folder)
        elif language == "toml":
            (folder / text.partition("\n")[0].removeprefix("# ")).write_text(text)


def _python(text: str, space: dict[str, object]) -> Iterator[str]:
    lines = text.splitlines()
    for statement in ast.parse(text).body:
        source = ast.Module([statement], [])
        shown = SHOWN.search(lines[statement.end_lineno - 1])
        if shown is None or not isinstance(statement, ast.Expr):
            assert shown is None, f"only an expression is compared: {lines[statement.lineno - 1]}"
            exec(compile(source, "page", "exec"), space)
            continue
        value = eval(compile(ast.Expression(statement.value), "page", "eval"), space)
        if not agrees(value, shown[1]):
            yield f"{ast.unparse(statement)} is {value}, the page says {shown[1]}"


def agrees(value: object, shown: str) -> bool:
    """Whether a value is what is shown, a number up to the digits that are shown."""
    if shown in (str(value), repr(value)):
        return True
    try:
        rounded, digits = float(shown.replace(",", "")), shown.partition(".")[2]
        return "e" not in shown and round(float(value), len(digits)) == rounded  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


def _console(text: str, folder: Path) -> Iterator[str]:
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, shown = part.replace("\\\n", " ").partition("\n")
        program, *arguments = shlex.split(command, comments=True)
        assert program == "muhat", command
        target = arguments.pop() if arguments[-2:-1] == [">"] else None
        arguments = arguments if target is None else arguments[:-1]
        with chdir(folder):
            # In this process, so that noise is that of the test's own key.
            done = CliRunner().invoke(main, arguments, env={"COLUMNS": "100"}, prog_name="muhat")
        complaint = done.stderr.replace(f"{folder}/", "")
        if done.exit_code != 0 and masked(shown) != masked(complaint):
            yield f"{command}: {complaint}"
        elif target is not None:
            (folder / target).write_text(done.stdout)
        elif done.exit_code == 0 and masked(shown) != masked(done.stdout):
            yield f"{command} prints\n{done.stdout}\nthe page says\n{shown}"


def masked(text: str) -> list[str]:
    """Lines without what differs from run to run."""
    text = re.sub("─+", "─", re.sub(r"[^\S\n]+", " ", text))
    lines = [line.strip() for line in text.strip().splitlines()]
    lines = [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", line) for line in lines]
    lines = [re.sub(r"\b[0-9a-f]{8}\b", "DIGEST", line) for line in lines]
    # Whether this is said depends on a noisy radius.
    lines = [line for line in lines if not line.startswith("The value is drawn towards")]
    noisy = ("…", " lie outside", "Complete records: about")
    return [
        re.sub(r"[\d,.]+", "#", line) if any(sign in line for sign in noisy) else line
        for line in lines
    ]
