"""The root mean square ℓ_p error of noise: (E‖z‖_p²)^½ for z = F·(noise of unit scale).

p = 2 is exact. Independent coordinates, up to a common random factor, are integrated: with
ψ(v) = E exp(−(|X|/v)^p) for one coordinate X of unit scale,

    E‖z‖_p² = 2/Γ(1 − 2/p) · ∫₀^∞ u·(1 − Π_i ψ(u/s_i)) du,

which for p = ∞ is the familiar ∫ 2u·P(max|z_i| > u) du. Correlated coordinates are simulated with
a fixed stream of numbers and rounded up by the confidence interval. What is only bounded says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from muhat._arrays import Floats
from muhat.domains.norms import p_norm
from muhat.noise.law import Shape

LARGEST_QUADRATURE_ORDER = 128.0

_ORDERS = (2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0, 32.0, 40.0, 48.0, 64.0, 80.0)


def root_mean_square(
    law: Shape, scales: Floats, factor: Floats | None, p: float, rows: int | None = None
) -> tuple[float, str]:
    """(E‖z‖_p²)^½ and how it was found: "exact", "quadrature", "bound" or "monte carlo".

    `scales`, of shape (d,), are the coordinates' scales; `factor`, of shape (d, k), is given if
    the coordinates are correlated, and then the law is built on normals or Laplace variables. The
    coordinates may be some of `rows` that have noise together.
    """
    if not scales.any():
        return 0.0, "exact"
    dim = rows or (len(scales) if factor is None else factor.shape[1])
    if p == 2:
        return float(np.linalg.norm(scales)) * math.sqrt(law.variance(dim)), "exact"
    mixing = math.sqrt(law.mixing(dim))
    if factor is None:
        scales = scales[scales > 0]
        if LARGEST_QUADRATURE_ORDER < p < math.inf:
            # ‖z‖_p ≤ d^{1/p}·‖z‖_∞, within 6 % at d = 1000.
            bound = _independent(law.marginal, scales, math.inf) * len(scales) ** (1 / p)
            return mixing * bound, "bound"
        return mixing * _independent(law.marginal, scales, p), "quadrature"
    return mixing * _simulated(law.marginal, factor, p), "monte carlo"


def _independent(marginal: str, scales: Floats, p: float) -> float:
    """(E‖z‖_p²)^½ for independent coordinates, by the trapezoidal rule in ln u."""
    largest = float(scales.max())
    log_scales, counts = np.unique(np.log(scales / largest), return_counts=True)
    step = 0.2 / min(max(p, 8.0), LARGEST_QUADRATURE_ORDER)
    grid = np.arange(-14.0, 7.0 + math.log(len(scales)), step)
    shortfall = _shortfall(marginal, p, (grid[0], grid[-1] - log_scales[0]), step)
    log_product = np.zeros_like(grid)
    for log_scale, count in zip(log_scales, counts, strict=True):
        log_product += count * np.log1p(-np.minimum(shortfall(grid - log_scale), 1 - 1e-15))
    integrand = np.exp(2 * grid) * -np.expm1(log_product)
    integral = float(np.sum(integrand) - integrand[-1] / 2) * step
    if math.isinf(p):
        return largest * math.sqrt(2 * integral)
    # Beyond the grid 1 − Πψ falls as u^{−p}; Euler–Maclaurin mends the cut.
    integral += float(integrand[-1]) * (1 / (p - 2) + step**2 * (p - 2) / 12)
    return largest * math.sqrt(2 / math.gamma(1 - 2 / p) * integral)


def _shortfall(
    marginal: str, p: float, reach: tuple[float, float], step: float
) -> Callable[[Floats], Floats]:
    """y ↦ 1 − ψ(e^y), with small values to full relative precision."""
    if math.isinf(p):
        return lambda y: _tail(marginal, np.exp(y))
    if marginal == "uniform":
        return lambda y: _uniform_shortfall(y, p)
    from scipy.interpolate import make_interp_spline

    # Σ_k mass_k·κ(x_k − y_j), κ(t) = 1 − exp(−e^{pt}), for all y on a grid: one correlation.
    x = np.arange(-32.0, 7.0, step)
    y = np.arange(reach[0] - step, reach[1] + 2 * step, step)
    mass = _density(marginal, np.exp(x)) * np.exp(x) * step
    differences = np.arange(len(x) + len(y) - 1) * step + (x[0] - y[-1])
    with np.errstate(over="ignore", under="ignore"):
        kernel = -np.expm1(-np.exp(p * differences))
    values = np.maximum(np.correlate(kernel, mass, mode="valid")[::-1], 1e-300)
    spline = make_interp_spline(y, np.log(values), k=7)
    return lambda at: np.asarray(np.exp(spline(at)), np.float64)


def _uniform_shortfall(y: Floats, p: float) -> Floats:
    """1 − ∫₀¹ exp(−(x/v)^p) dx at v = e^y: an incomplete gamma function, or its series."""
    from scipy.special import gammainc

    a = np.exp(np.minimum(-p * y, 600.0))
    b = np.minimum(a, 1e-4)
    series = b / (p + 1) - b**2 / (2 * (2 * p + 1)) + b**3 / (6 * (3 * p + 1))
    closed = 1 - np.exp(y) * math.gamma(1 + 1 / p) * gammainc(1 / p, a)
    return np.where(a < 1e-4, series, closed)


def _density(marginal: str, x: Floats) -> Floats:
    """The density of |X| at x ≥ 0."""
    if marginal == "normal":
        return np.asarray(math.sqrt(2 / math.pi) * np.exp(-x * x / 2), np.float64)
    return np.exp(-x)


def _tail(marginal: str, x: Floats) -> Floats:
    """P(|X| > x)."""
    from scipy.special import erfc

    if marginal == "normal":
        return np.asarray(erfc(x / math.sqrt(2)), np.float64)
    return np.exp(-x) if marginal == "laplace" else np.maximum(1 - x, 0.0)


def moment_bound(scales: Floats, p: float, moment: Callable[[float], float | Floats]) -> float:
    """An upper bound on (E‖z‖_p²)^½ from (E|z_i|^q)^{1/q} ≤ scales_i·moment(q).

    For every q from 2 to p, ‖z‖_p ≤ ‖z‖_q and (E‖z‖_q²)^½ ≤ (E‖z‖_q^q)^{1/q}; the best of some q.
    """
    orders = [q for q in _ORDERS if q < p] + ([p] if math.isfinite(p) else [])
    return min(float(p_norm(scales * moment(q), q)) for q in orders)


def _simulated(marginal: str, factor: Floats, p: float) -> float:
    """(E‖F·g‖_p²)^½ for independent g of the law, plus 4 standard errors of the simulation.

    ‖F·g‖₂², whose mean is known, is the control variate.
    """
    largest = float(np.abs(factor).max())
    factor = factor / largest
    rank = factor.shape[1]
    block = 1 << 10
    blocks = max(4, min(64, (1 << 24) // (block * rank)))
    sizes, controls = np.empty(blocks * block), np.empty(blocks * block)
    for b in range(blocks):
        noise = _FIXED[marginal](block, rank, b * block) @ factor.T
        sizes[b * block : (b + 1) * block] = p_norm(noise, p) ** 2
        controls[b * block : (b + 1) * block] = np.linalg.norm(noise, axis=1) ** 2
    controls -= float(np.sum(factor**2)) * (2.0 if marginal == "laplace" else 1.0)
    covariance = np.cov(sizes, controls)
    adjusted = sizes - covariance[0, 1] / covariance[1, 1] * controls
    bound = float(adjusted.mean() + 4 * adjusted.std() / math.sqrt(len(adjusted)))
    return largest * math.sqrt(bound)


def fixed_normals(rows: int, columns: int, start: int = 0) -> Floats:
    """Standard normals for predictions, never for noise: the same on every run."""
    from scipy.special import ndtri

    return np.asarray(ndtri(_fixed_uniforms(rows, columns, start)), np.float64)


def _fixed_laplace(rows: int, columns: int, start: int) -> Floats:
    """Laplace variables of scale 1, from the same stream."""
    uniform = _fixed_uniforms(rows, columns, start)
    return np.asarray(np.sign(uniform - 0.5) * -np.log(2 * np.minimum(uniform, 1 - uniform)))


_FIXED = {"normal": fixed_normals, "laplace": _fixed_laplace}


def _fixed_uniforms(rows: int, columns: int, start: int) -> Floats:
    """SplitMix64 of a counter, of shape (rows, columns), from row `start` on; within (0, 1)."""
    index = np.arange(start * columns, (start + rows) * columns, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = (index + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    uniform = ((z >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return uniform.reshape(rows, columns)
