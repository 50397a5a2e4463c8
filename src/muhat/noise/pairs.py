"""How far a combination a·z₁ + b·z₂ of two coordinates of noise reaches.

For normal and Euclidean noise it has the law of √(a² + b²)·z₁. For the others, with |a| ≥ |b|:

    Laplace    P(|·| > t) = (a²·e^{−t/a} − b²·e^{−t/b})/(a² − b²)
    maximum    z = G·v with v uniform: P(|av₁ + bv₂| > x) is 1 − x/a up to a − b, then
               (a + b − x)²/(4ab), and x = t/G is averaged over G ~ Gamma(r + 1)
    diamond    of a pair (s, c), a·s + b·c = (a + b)/2·z₁ − (a − b)/2·z₂ with z of the cube's law
"""

from __future__ import annotations

import numpy as np

from muhat._arrays import Floats
from muhat.noise.law import Shape

_TINY = 1e-6
"""A second coefficient below this part of the first moves a tail by less than 10^−11."""


def pair_tail(law: Shape, reach: Floats, first: Floats, second: Floats, rows: int) -> Floats:
    """P(|a·z₁ + b·z₂| > reach) for noise of `rows` coordinates, elementwise."""
    turned = law.name == "diamond-norm"
    if turned:
        first, second = (first + second) / 2, (first - second) / 2
    sizes = np.abs(first), np.abs(second)
    a, b = np.maximum(*sizes), np.minimum(*sizes)
    t = np.maximum(reach, 0.0)
    if law.name in ("laplace", "maximum-norm") or turned:
        # In units of the larger coefficient, and no farther than any float's tail.
        unit = np.where(a > 0, a, 1.0)
        with np.errstate(over="ignore"):
            t, b, a = np.minimum(t / unit, 1e12), b / unit, np.ones_like(unit)
        return _laplace(t, a, b) if law.name == "laplace" else _maximum(t, a, b, rows)
    combined = np.hypot(a, b)
    tails = [law.tail(float(x), rows) for x in np.ravel(t / combined)]
    return np.reshape(np.array(tails), np.shape(combined))


def _laplace(t: Floats, a: Floats, b: Floats) -> Floats:
    equal = b > a * (1 - _TINY)
    apart = np.where(equal, a / 2, b)
    smaller = apart**2 * np.exp(-np.divide(t, apart, out=np.full_like(t, np.inf), where=apart > 0))
    unequal = (a**2 * np.exp(-t / a) - smaller) / (a**2 - apart**2)
    return np.where(equal, (1 + t / (2 * a)) * np.exp(-t / a), unequal)


def _maximum(t: Floats, a: Floats, b: Floats, rows: int) -> Floats:
    from scipy.special import gammaincc

    def beyond(least: Floats) -> list[Floats]:
        """E[G^{−k}; G > least] for k = 0, 1, 2."""
        return [
            gammaincc(rows + 1, least),
            gammaincc(rows, least) / rows,
            gammaincc(max(rows - 1, 1), least) / (rows * max(rows - 1, 1)),
        ]

    single = b < _TINY * a
    apart = np.where(single, a / 2, b)
    flat = t / np.maximum(a - apart, 1e-30)
    high, low = beyond(flat), beyond(t / (a + apart))
    middle = [below - above for below, above in zip(low, high, strict=True)]
    bent = (a + apart) ** 2 * middle[0] - 2 * (a + apart) * t * middle[1] + t**2 * middle[2]
    both = high[0] - t / a * high[1] + bent / (4 * a * apart)
    alone = beyond(t / a)
    return np.asarray(np.where(single, alone[0] - t / a * alone[1], both))
