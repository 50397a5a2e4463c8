"""How the studies of Huang, Liang and Yi draw: every estimator has the same look everywhere."""

from __future__ import annotations

from muhat.studies.drawing import Line, lines
from muhat.studies.huang_trials import (
    CLIPPED,
    KNOWN,
    LEARNT,
    MUHAT,
    PLAIN,
    ROUNDS,
    SHIFTED,
    TOLD,
    ratios,
)
from muhat.studies.study import Panel, Rows, where

LOOKS: dict[str, tuple[int | None, str, bool]] = {
    MUHAT: (0, "-", False),
    SHIFTED: (1, "-", False),
    CLIPPED: (2, "-", False),
    PLAIN: (None, "-", False),
    f"{KNOWN}1": (3, ":", True),
    f"{KNOWN}2": (4, ":", True),
    f"{KNOWN}3": (5, ":", True),
    f"{KNOWN}4": (6, ":", True),
    f"{KNOWN}10": (7, "--", True),
    f"{TOLD}1": (3, "-.", False),
    f"{TOLD}2": (4, "-.", False),
    f"{TOLD}3": (5, "-.", False),
    f"{TOLD}4": (6, "-.", False),
    f"{TOLD}10": (7, "-.", False),
    f"{LEARNT}1": (3, ":", True),
    f"{LEARNT}2": (4, ":", True),
    f"{LEARNT}3": (5, ":", True),
    f"{LEARNT}4": (6, ":", True),
    f"{LEARNT}5": (7, "--", True),
}
"""Colour and marker, dashes, and whether the marker is hollow."""

LABELS = {
    MUHAT: "muhat's default",
    **{f"{TOLD}{t}": f"{KNOWN}{t}, told the scale" for t in ROUNDS},
}
X_LABELS = {
    "d": "dimension d",
    "rho": "ρ of zCDP",
    "bound": "R/√d, the bound on the mean",
}
NAMES = {"mu": "μ = ", "kappa": "κ = "}
DASHES = ("-", "--", ":")


def panel(
    title: str, rows: Rows, x: str, kinds: tuple[str, ...], *, y: str = "error", label: str = ""
) -> Panel:
    """Errors over a column, a line for each estimator of these kinds."""
    found = []
    for name, (look, dash, hollow) in LOOKS.items():
        chosen = sorted(where(rows, estimator=name), key=lambda row: float(row[x]))
        if chosen and name.startswith(kinds):
            places, heights = [row[x] for row in chosen], [row[y] for row in chosen]
            shown = LABELS.get(name, name.replace("learnt covariance t", "MVCRec t"))
            found.append(Line(shown, places, heights, look, dash, hollow))
    return lines(title, found, x=X_LABELS[x], y=label or "ℓ₂ error, trimmed mean")


def beside(
    title: str,
    rows: Rows,
    x: str,
    by: str,
    names: tuple[str, ...],
    *,
    kinds: tuple[str, ...] = (KNOWN, LEARNT),
) -> Panel:
    """Errors over a column beside those of COINPRESS at its best, a line for each value of `by`."""
    found = []
    for look, name in enumerate(names):
        for number, value in enumerate(dict.fromkeys(row[by] for row in rows)):
            chosen = where(rows, **{by: value})
            places = {row["cell"]: row[x] for row in chosen}
            quotients = dict(zip(places, ratios(chosen, "private_rms", name, *kinds), strict=True))
            order = sorted(places, key=lambda cell: float(places[cell]))
            label = f"{LABELS.get(name, name)}, {NAMES.get(by, '')}{_text(value)}"
            heights = [quotients[cell] for cell in order]
            xs = [places[cell] for cell in order]
            found.append(Line(label, xs, heights, look, DASHES[number % 3], number > 0))
    shown = "RMS error ÷ COINPRESS's best t"
    return lines(title, found, x=X_LABELS[x], y=shown, scale="semilogx", level=1)


def _text(value: object) -> str:
    return value if isinstance(value, str) else f"{value:g}"
