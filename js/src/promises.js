/**
 * Whether a description keeps what it promises: exact, and for every device to see for itself.
 *
 * For one round of fragments that takes all of (ε, δ). docs/wire.md lists the conditions; muhat's
 * docs/proofs/shuffle-sums.md proves that they suffice.
 */

import { sensitivity } from "./box_grid.js";
import {
  exponential,
  fallingExponential,
  Fraction,
  fractionRootUp,
  powerOfTwo,
  root,
} from "./fractions.js";
import { tellsAtMost } from "./mixing.js";

const ONE = new Fraction(1n);
const TWO = new Fraction(2n);
/** The part of δ that mixing may spend beside normal noise. */
const MIXING = new Fraction(1n, 128n);
/** The part of ε for what discrete noise lacks to be normal. */
const CLOSENESS = powerOfTwo(-30);
const LEAST_RATE = powerOfTwo(-50);
const LEAST_VARIANCE = new Fraction(5n);
const SMOOTHING = new Fraction(3n);
const PRECISION = 2048n;
/** Beyond it nothing is evaluated, and so refused: normal tails below 10^−220. */
const FARTHEST = new Fraction(32n);
/** Of an evaluation of Φ: see `normalBelow`. */
const ERROR = powerOfTwo(-1200);

/**
 * @param {import("./randomizers.js").Fragments} randomizer
 * @param {Fraction} epsilon
 * @param {Fraction} delta
 */
export function keepsMixed({ grid, bits, noise, dim }, epsilon, delta) {
  const moved = sensitivity(grid, bits);
  const isLaplace = noise.law === "laplace";
  const enough = isLaplace
    ? keepsLaplace(noise.parameter, moved.l1, epsilon)
    : keepsNormal(noise, moved.l2, dim, epsilon, delta);
  const [least] = fallingExponential(epsilon, 256n);
  const within = (isLaplace ? ONE : MIXING).times(delta).times(least).over(ONE.plus(least));
  const modulus = 1n << BigInt(noise.modulusBits);
  return enough && tellsAtMost(Number(noise.honest), noise.fragments, modulus, dim, within);
}

/**
 * The parts of `honest` people add up to P(k) ∝ e^−(rate·|k|) exactly.
 *
 * @param {Fraction} rate
 * @param {Fraction} l1
 * @param {Fraction} epsilon
 */
function keepsLaplace(rate, l1, epsilon) {
  return LEAST_RATE.atMost(rate) && rate.times(l1).atMost(epsilon);
}

/**
 * The parts add up to normal noise up to a factor of e^{±τ}, τ ≤ 2^−30·ε: with parts of a variance
 * of at least 5 it is at most r·(5h·2^−70 + 2^−80), as e^−(2π²·2.5) < 2^−70.
 *
 * @param {{parameter: Fraction, honest: bigint}} noise
 * @param {Fraction} l2
 * @param {number} numbers
 * @param {Fraction} epsilon
 * @param {Fraction} delta
 */
function keepsNormal({ parameter, honest }, l2, numbers, epsilon, delta) {
  if (!LEAST_VARIANCE.atMost(parameter)) return false;
  const tau = epsilon.times(CLOSENESS);
  const each = new Fraction(5n * honest, 1n << 70n).plus(powerOfTwo(-80));
  if (!each.times(new Fraction(BigInt(numbers))).atMost(tau)) return false;
  const variance = parameter.times(new Fraction(honest)).minus(SMOOTHING);
  const mu = fractionRootUp(l2.times(l2).over(variance), 160n);
  const left = delta.times(ONE.minus(MIXING)).times(ONE.minus(tau));
  return isWithin(mu, epsilon.minus(tau.times(TWO)), left);
}

/**
 * Whether normal noise of the strength μ is (ε, δ)-private: Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) ≤ δ.
 *
 * @param {Fraction} mu
 * @param {Fraction} epsilon
 * @param {Fraction} delta
 */
function isWithin(mu, epsilon, delta) {
  const [half, ratio] = [mu.over(TWO), epsilon.over(mu)];
  if (!half.plus(ratio).atMost(FARTHEST)) return false;
  const above = normalBelow(half.minus(ratio)).plus(ERROR);
  const below = normalBelow(new Fraction(0n).minus(half.plus(ratio))).minus(ERROR);
  const [, most] = fallingExponential(epsilon, PRECISION);
  return above.minus(below.over(most)).atMost(delta);
}

/**
 * Φ(x) for |x| ≤ 32, within 2^−1200: ½ ± φ(x)·(x + x³/3 + x⁵/15 + …), all terms of one sign.
 *
 * In units of 2^−2048. A unit that a term lacks grows with the terms after it to no more than
 * e^{x²/2} < 2^740 units, there are fewer than 2^14 terms, and the error of φ, a few units, is
 * taken as often as the sum is large, less than 2^745 times.
 *
 * @param {Fraction} x
 */
function normalBelow(x) {
  const size = new Fraction(x.n < 0n ? -x.n : x.n, x.d);
  const fixed = (size.n << PRECISION) / size.d;
  const square = (fixed * fixed) >> PRECISION;
  let [term, sum] = [fixed, fixed];
  for (let odd = 3n; term; odd += 2n) {
    term = ((term * square) >> PRECISION) / odd;
    sum += term;
  }
  const [falling] = exponential(square, PRECISION + 1n, PRECISION);
  const density = (falling << PRECISION) / root((2n * pi()) << PRECISION);
  const part = (density * sum) >> PRECISION;
  const middle = 1n << (PRECISION - 1n);
  return new Fraction(x.n < 0n ? middle - part : middle + part, 1n << PRECISION);
}

/** π in units of 2^−2048, up to a few of them: 16·arctan(1/5) − 4·arctan(1/239). */
function pi() {
  return 16n * arctangent(5n) - 4n * arctangent(239n);
}

/** @param {bigint} inverse */
function arctangent(inverse) {
  let power = (1n << PRECISION) / inverse;
  let total = power;
  for (let odd = 3n, sign = -1n; power; odd += 2n, sign = -sign) {
    power /= inverse * inverse;
    total += (sign * power) / odd;
  }
  return total;
}
