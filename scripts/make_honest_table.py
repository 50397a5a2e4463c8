"""Writes into docs/protocols.md what is left of a promise when fewer people are honest.

python scripts/make_honest_table.py
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import muhat as mh
from muhat import protocols
from muhat.privacy import gaussian_delta
from muhat.protocols.encodings.fragment_count import distance
from muhat.protocols.randomizers.fragment_noise import SMOOTHING, FragmentNoise
from muhat.protocols.randomizers.fragment_randomizer import FragmentRandomizer

PAGE = Path(__file__).parent.parent / "docs" / "protocols.md"
BLOCK = re.compile(r"(<!-- honest: start -->\n).*?(<!-- honest: end -->)", flags=re.S)
PROMISE = mh.ApproxDP(epsilon=1.0, delta=1e-6)
N, COUNTED_ON = 10_000, 9_000
PARTS = (1.0, 0.95, 0.9, 0.75, 0.5, 0.25, 0.1)
ROUTES = {
    "normal noise (32 columns)": {"domain": mh.Ball(1, 32)},
    "Laplace noise (one column)": {"domain": mh.Box([0.0], [1.0])},
    "single messages (8 columns)": {"domain": mh.Ball(1, 8), "most_bytes": 64},
}
LARGEST = 12
GRID = 1 << 17

Delta = Callable[[float], float]


@dataclass(frozen=True)
class Left:
    """What is left of a promise: δ as a function of ε, and ε at the promised δ."""

    delta: Delta
    known: float | None = None

    def epsilon(self) -> float:
        """The least ε with δ(ε) at most the promised one."""
        if self.known is not None:
            return self.known
        # The bound on what fragments tell grows with ε: the first ε is looked for.
        steps = (step / 100 for step in range(100 * LARGEST))
        return next((step for step in steps if self.delta(step) <= PROMISE.delta), math.inf)


def main() -> None:
    text = PAGE.read_text("utf-8")
    PAGE.write_text(BLOCK.sub(lambda m: f"{m[1]}{table()}\n{m[2]}", text), "utf-8")


def table() -> str:
    """A line for each number of honest people: δ at the promised ε, and ε at the promised δ."""
    lines = [
        f"| honest, of {COUNTED_ON} counted on | {' | '.join(ROUTES)} |",
        f"|---|{'---|' * len(ROUTES)}",
    ]
    curves = [curve_of(**asked) for asked in ROUTES.values()]
    for part in PARTS:
        honest = round(part * COUNTED_ON)
        cells = " | ".join(cell(curve(honest)) for curve in curves)
        lines.append(f"| {honest} | {cells} |")
    return "\n".join(lines)


def cell(left: Left) -> str:
    """Both readings, or that nothing has changed."""
    at_delta = left.epsilon()
    if at_delta <= PROMISE.epsilon:
        return "as promised"
    loss = f"ε = {at_delta:.2f}" if at_delta < LARGEST else "no ε"
    return f"δ = {left.delta(PROMISE.epsilon):.1e}; {loss}"


def curve_of(**asked: object) -> Callable[[int], Left]:
    """For a number of honest people, what is left: δ as a function of ε."""
    protocol = protocols.shuffle_mean(n=N, privacy=PROMISE, honest=COUNTED_ON, **asked)  # type: ignore[arg-type]
    randomizer = protocol.randomizer
    if not isinstance(randomizer, FragmentRandomizer):
        return lambda honest: single_messages(randomizer, honest)
    noise = randomizer.noise
    left = normal if noise.law == "gaussian" else laplace
    return lambda honest: Left(mixed(noise, honest, left(noise, honest)))


def mixed(noise: FragmentNoise, honest: int, left: Delta) -> Delta:
    """What the noise leaves, and what fragments tell beyond the sums."""
    eta = distance(honest, noise.fragments, noise.modulus, noise.sensitivity.numbers)
    return lambda epsilon: min(1.0, left(epsilon) + (1 + math.exp(epsilon)) * eta)


def normal(noise: FragmentNoise, honest: int) -> Delta:
    """Fewer parts of the normal noise: a larger μ."""
    variance = honest * noise.parameter - SMOOTHING
    mu = float(noise.sensitivity.l2) / math.sqrt(variance)
    return lambda epsilon: gaussian_delta(mu, epsilon)


def laplace(noise: FragmentNoise, honest: int) -> Delta:
    """Fewer parts of discrete Laplace noise, for one number: its probabilities themselves.

    A part is the difference of two negative binomials, whose sum over a share r of the people has
    the characteristic function ((1 − p)²/|1 − p·e^{it}|²)^r, p = e^{−rate}.
    """
    assert noise.sensitivity.numbers == 1
    p = math.exp(-float(noise.parameter))
    angles = 2 * math.pi * np.arange(GRID) / GRID
    power = ((1 - p) ** 2 / np.abs(1 - p * np.exp(1j * angles)) ** 2) ** (honest / noise.honest)
    probabilities = np.maximum(np.fft.ifft(power).real, 0.0)
    most = math.floor(noise.sensitivity.l1)
    shifts = sorted({1, most // 8, most // 4, most // 2, most})
    pairs = [(probabilities, np.roll(probabilities, shift)) for shift in shifts]
    return lambda epsilon: max(hockey_stick(*pair, epsilon) for pair in pairs)


def hockey_stick(first: NDArray[np.float64], second: NDArray[np.float64], epsilon: float) -> float:
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


def single_messages(randomizer: object, honest: int) -> Left:
    """Fewer people to hide among: the least δ for which `amplified` gives ε, to a hundredth."""
    loss, share = randomizer.epsilon, randomizer.favoured  # type: ignore[attr-defined]

    def delta(epsilon: float) -> float:
        low, high = -6.0, 0.0
        while high - low > 4e-3:
            middle = (low + high) / 2
            found = mh.amplified(loss, honest, 10**middle, share=share).epsilon
            low, high = (low, middle) if found <= epsilon else (middle, high)
        return float(10**high)

    return Left(delta, mh.amplified(loss, honest, PROMISE.delta, share=share).epsilon)


if __name__ == "__main__":
    main()
