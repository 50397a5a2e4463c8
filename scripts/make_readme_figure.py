"""Writes docs/images/noise-{light,dark}.svg: noise as a sphere against noise as an ellipse.

python scripts/make_readme_figure.py

The records are salaries of this year and the next, where a raise is known to lie within bounds. The
errors beneath the pictures are those of muhat's plans; the dots are drawn with a fixed seed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import muhat as mh

FOLDER = Path(__file__).parent.parent / "docs" / "images"
NEXT_YEAR = np.array([[1, 0], [1, 1]])  # (salary, raise) to (salary, salary a year later)
RECORDS = mh.Box(lower=[0, -20], upper=[200, 60])
N, PRIVACY = 10_000, mh.ZCDP(rho=0.1)

WIDTH, HEIGHT, PANEL = 760, 440, 380
CENTRE_Y, REACH, SCALE, DOTS = 196, 140, 0.37, 400
FARTHEST = 2.6
"""The contour is drawn at so many standard deviations; dots beyond it are left out."""

COLOURS = {
    "light": {"ink": "#1f2328", "quiet": "#59636e", "body": "#d97706", "noise": "#0969da"},
    "dark": {"ink": "#f0f6fc", "quiet": "#9198a1", "body": "#f0a202", "noise": "#4493f8"},
}

OPENING = f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" \
height="{HEIGHT}" font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif" \
text-anchor="middle" role="img">
<title>What one person can change, inside the sphere and inside the ellipse of the noise</title>"""

Matrix = NDArray[np.float64]


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for theme in COLOURS:
        (FOLDER / f"noise-{theme}.svg").write_text(picture(theme))


def picture(theme: str) -> str:
    """The whole SVG file."""
    colours = COLOURS[theme]
    domain = NEXT_YEAR @ RECORDS
    ellipse = mh.smallest_ellipsoid(domain, p=2).matrix
    corners = difference_corners()
    radius = float(np.max(np.linalg.norm(corners, axis=1)))
    plan = mh.plan_mean(domain=domain, n=N, privacy=PRIVACY)
    ball = mh.plan_mean(domain=mh.Ball(radius=radius / 2, dim=2), n=N, privacy=PRIVACY)
    least = plan.certificate.error / plan.certificate.ratio
    sphere_words = [f"error {ball.expected_error:.3f}", "the same noise in every direction"]
    ellipse_words = [
        f"error {plan.expected_error:.3f}; every unbiased mechanism: {least:.3f} on some dataset",
        "noise shaped like what a person can move",
    ]
    sphere = radius**2 * np.eye(2)
    parts = [
        OPENING,
        *panel(0, sphere, corners, ["The smallest sphere", *sphere_words], colours),
        *panel(PANEL, ellipse, corners, ["The smallest ellipse: muhat", *ellipse_words], colours),
        *legend(colours),
        "</svg>\n",
    ]
    return "\n".join(parts)


def difference_corners() -> Matrix:
    """The corners of K − K, in order: what replacing one record can change."""
    level, raised = (np.array(RECORDS.upper) - np.array(RECORDS.lower)).tolist()
    signs = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    return np.array([NEXT_YEAR @ (a * level, b * raised) for a, b in signs], dtype=float)


def panel(
    left: int, matrix: Matrix, corners: Matrix, words: list[str], ink: dict[str, str]
) -> list[str]:
    """Body, contour and dots; a title above and two lines of text below."""
    middle = left + PANEL // 2

    def at(point: Matrix) -> str:
        return f"{middle + SCALE * point[0]:.1f},{CENTRE_Y - SCALE * point[1]:.1f}"

    factor = np.linalg.cholesky(matrix)
    draws = np.random.default_rng(7).standard_normal((DOTS, 2)) / FARTHEST
    dots = [factor @ draw for draw in draws if np.linalg.norm(draw) <= 1]
    turns = np.linspace(0, 2 * np.pi, 121)
    contour = [factor @ (np.cos(turn), np.sin(turn)) for turn in turns]
    outline, body = (" ".join(map(at, points)) for points in (contour, corners))
    title, *lines = words
    drawn = [
        f'<text x="{middle}" y="24" font-size="16" font-weight="600" fill="{ink["ink"]}">'
        f"{title}</text>",
        *axes(middle, ink),
        f'<g fill="{ink["noise"]}" fill-opacity="0.55">',
    ]
    for x, y in (at(dot).split(",") for dot in dots):
        drawn.append(f'<circle cx="{x}" cy="{y}" r="1.4"/>')
    drawn += [
        "</g>",
        f'<polygon points="{body}" fill="{ink["body"]}" fill-opacity="0.25" '
        f'stroke="{ink["body"]}" stroke-width="1.5"/>',
        f'<polyline points="{outline}" fill="none" stroke="{ink["noise"]}" stroke-width="2"/>',
    ]
    for row, line in enumerate(lines):
        colour = ink["ink"] if row == 0 else ink["quiet"]
        height = HEIGHT - 66 + 20 * row
        drawn.append(
            f'<text x="{middle}" y="{height}" font-size="13" fill="{colour}">{line}</text>'
        )
    return drawn


def axes(middle: int, ink: dict[str, str]) -> list[str]:
    """Two thin lines through the middle, with the names of the columns."""
    style = f'stroke="{ink["quiet"]}" stroke-width="0.7" stroke-opacity="0.6"'
    words = f'font-size="11" fill="{ink["quiet"]}"'
    return [
        f'<path d="M{middle - REACH},{CENTRE_Y}h{2 * REACH}M{middle},{CENTRE_Y - REACH}'
        f'v{2 * REACH}" {style}/>',
        f'<text x="{middle + REACH + 22}" y="{CENTRE_Y - 6}" {words}>this year</text>',
        f'<text x="{middle}" y="{CENTRE_Y - REACH - 6}" {words}>next year</text>',
    ]


def legend(ink: dict[str, str]) -> list[str]:
    """What the colours mean."""
    words = f'y="{HEIGHT - 12}" font-size="12" fill="{ink["quiet"]}" text-anchor="start"'
    return [
        f'<rect x="170" y="{HEIGHT - 22}" width="18" height="11" fill="{ink["body"]}" '
        f'fill-opacity="0.25" stroke="{ink["body"]}"/>',
        f'<text x="196" {words}>what replacing one person can change</text>',
        f'<circle cx="440" cy="{HEIGHT - 16}" r="5" fill="none" stroke="{ink["noise"]}" '
        'stroke-width="2"/>',
        f'<text x="454" {words}>the shape of the noise that hides it</text>',
    ]


if __name__ == "__main__":
    main()
