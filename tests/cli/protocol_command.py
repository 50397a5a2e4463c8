"""`muhat protocol`, run in this process."""

from __future__ import annotations

from click.testing import CliRunner

from muhat.cli import main


def run(*arguments, code=0, stdin=None):
    """What the command says; it ends with `code` and without a traceback."""
    result = CliRunner().invoke(main, ["protocol", *map(str, arguments)], input=stdin)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result
