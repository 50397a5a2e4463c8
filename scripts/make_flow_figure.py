"""Writes docs/images/flow-{light,dark}.svg: the way from what is asked to a release.

python scripts/make_flow_figure.py
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "images"
WIDTH, HEIGHT = 760, 236
COLOURS = {
    "light": {"ink": "#1f2328", "quiet": "#59636e", "box": "#ddf4ff", "line": "#0969da"},
    "dark": {"ink": "#f0f6fc", "quiet": "#9198a1", "box": "#0c2d4d", "line": "#4493f8"},
}
BOXES = {
    "what is asked": (8, 16, "domain, columns, n, p"),
    "promise": (8, 92, "privacy/"),
    "mechanism": (208, 54, "mechanisms/: integers, noise, proof"),
    "plan": (408, 54, "planning/: complete before data"),
    "release": (608, 54, "release/: with its certificate"),
}
SIZE = (144, 56)
ARROWS = [
    ("what is asked", "mechanism"),
    ("promise", "mechanism"),
    ("mechanism", "plan"),
    ("plan", "release"),
]
STEPS = ["approve", "open", "count", "admit", "charge", "read"]


def main() -> None:
    """Both themes."""
    for theme in COLOURS:
        (FOLDER / f"flow-{theme}.svg").write_text(picture(COLOURS[theme]))


def picture(colours: dict[str, str]) -> str:
    """The whole SVG file."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif" '
        'text-anchor="middle" role="img">',
        "<title>From what is asked and what is promised to a plan, and to a release</title>",
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="{colours["line"]}"/></marker></defs>',
        *(arrow(*ends, colours) for ends in ARROWS),
        *(box(name, colours) for name in BOXES),
        *order(colours),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def box(name: str, colours: dict[str, str]) -> str:
    """A noun, and the room it lives in."""
    x, y, room = BOXES[name]
    width, height = SIZE
    middle = x + width / 2
    below, _, rest = room.partition(": ")
    words = [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{colours["box"]}" '
        f'stroke="{colours["line"]}"/>',
        f'<text x="{middle}" y="{y + 24}" font-size="15" font-weight="600" '
        f'fill="{colours["ink"]}">{name}</text>',
        f'<text x="{middle}" y="{y + 43}" font-size="11" fill="{colours["quiet"]}">{below}</text>',
    ]
    if rest:
        words.append(
            f'<text x="{middle}" y="{y + height + 15}" font-size="11" '
            f'fill="{colours["quiet"]}">{rest}</text>'
        )
    return "\n".join(words)


def arrow(start: str, end: str, colours: dict[str, str]) -> str:
    """From the right edge of one box to the left edge of another."""
    (x, y, _), (x2, y2, _) = BOXES[start], BOXES[end]
    width, height = SIZE
    return (
        f'<line x1="{x + width}" y1="{y + height / 2}" x2="{x2 - 2}" y2="{y2 + height / 2}" '
        f'stroke="{colours["line"]}" stroke-width="1.5" marker-end="url(#tip)"/>'
    )


def order(colours: dict[str, str]) -> list[str]:
    """The steps of planning/run.py, under the arrow from plan to release."""
    left, right, y = 396, 748, 190
    gap = (right - left) / len(STEPS)
    lines = [
        f'<text x="{(left + right) / 2}" y="{y - 18}" font-size="11" fill="{colours["quiet"]}">'
        "planning/run.py, the one order:</text>"
    ]
    for place, step in enumerate(STEPS):
        weight = 700 if step == "charge" else 400
        lines.append(
            f'<text x="{left + gap * (place + 0.5)}" y="{y + 6}" font-size="13" '
            f'font-weight="{weight}" fill="{colours["ink"]}">{step}</text>'
        )
    lines.append(
        f'<line x1="{left}" y1="{y + 16}" x2="{right}" y2="{y + 16}" stroke="{colours["line"]}" '
        'stroke-width="1.5" marker-end="url(#tip)"/>'
    )
    lines.append(
        f'<text x="{(left + right) / 2}" y="{y + 34}" font-size="11" fill="{colours["quiet"]}">'
        "no value is read before the charge</text>"
    )
    return lines


if __name__ == "__main__":
    main()
