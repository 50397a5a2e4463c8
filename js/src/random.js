/**
 * Exact draws: every one has exactly the law that it is said to have, from uniform 64-bit words.
 *
 * Words come from the system (`systemWords`); tests hand in others. What is random here is so by
 * comparisons of whole numbers alone: docs/proofs/shared-noise.md of muhat. The time that a draw
 * takes depends on it.
 */

import { bitLength, Fraction, root } from "./fractions.js";

/** @typedef {() => bigint} Words A uniform whole number below 2^64, independent of all others. */

const WORD_BITS = 64n;

/** @type {Words} */
export function systemWords() {
  const [word] = crypto.getRandomValues(new BigUint64Array(1));
  return word;
}

/**
 * A uniform whole number from 0 up to bound − 1.
 *
 * @param {bigint} bound
 * @param {Words} words
 */
export function below(bound, words) {
  const bits = BigInt(bitLength(bound - 1n));
  for (;;) {
    let [found, drawn] = [0n, 0n];
    while (drawn < bits) [found, drawn] = [(found << WORD_BITS) | words(), drawn + WORD_BITS];
    found >>= drawn - bits;
    if (found < bound) return found;
  }
}

/**
 * True with exactly this probability, from 0 to 1.
 *
 * @param {Fraction} probability
 * @param {Words} words
 * @returns {boolean}
 */
export function coin(probability, words) {
  let left = probability.n;
  for (;;) {
    left <<= WORD_BITS;
    const first = left / probability.d;
    if (first >> WORD_BITS) return true;
    const word = words();
    if (word !== first) return word < first;
    // The bits so far are those of the probability: what follows them decides, if anything does.
    left -= first * probability.d;
    if (left === 0n) return false;
  }
}

/**
 * True with probability e^−exponent, exponent ≥ 0: Canonne, Kamath and Steinke (2020), algorithm 1.
 *
 * @param {Fraction} exponent
 * @param {Words} words
 */
export function fallingCoin(exponent, words) {
  let { n, d } = exponent;
  for (; n > d; n -= d) {
    if (!smallFallingCoin(1n, 1n, words)) return false;
  }
  return smallFallingCoin(n, d, words);
}

/**
 * The first k at which a coin of probability (n/d)/k fails is odd with probability e^−(n/d).
 *
 * @param {bigint} n at most d
 * @param {bigint} d
 * @param {Words} words
 */
function smallFallingCoin(n, d, words) {
  let k = 1n;
  while (coin(new Fraction(n, d * k), words)) k += 1n;
  return Boolean(k & 1n);
}

/**
 * G with P(G ≥ k) = e^−(rate·k).
 *
 * With rate = s/t, X = U + t·V has P(X ≥ x) = e^−(x/t), and G = ⌊X/s⌋.
 *
 * @param {Fraction} rate
 * @param {Words} words
 */
export function geometric(rate, words) {
  const t = rate.d;
  let u;
  do u = below(t, words);
  while (!smallFallingCoin(u, t, words));
  let v = 0n;
  while (smallFallingCoin(1n, 1n, words)) v += 1n;
  return (u + t * v) / rate.n;
}

/**
 * One person's part of discrete Laplace noise, of which `parts` make P(k) ∝ e^−(rate·|k|).
 *
 * The difference of two negative binomial numbers of shape 1/parts: of G things, permuted at
 * random, those in cycles that are marked with probability 1/parts.
 *
 * @param {Fraction} rate
 * @param {bigint} parts
 * @param {Words} words
 */
export function laplacePart(rate, parts, words) {
  return negativeBinomial(rate, parts, words) - negativeBinomial(rate, parts, words);
}

/**
 * @param {Fraction} rate
 * @param {bigint} parts
 * @param {Words} words
 */
function negativeBinomial(rate, parts, words) {
  const marked = new Fraction(1n, parts);
  let found = 0n;
  for (let left = geometric(rate, words); left;) {
    // The cycle of any one thing is uniformly long, and the others are permuted uniformly.
    const length = below(left, words) + 1n;
    if (coin(marked, words)) found += length;
    left -= length;
  }
  return found;
}

/**
 * A whole number k with P(k) ∝ e^−(k²/(2·variance)): Canonne, Kamath and Steinke (2020).
 *
 * @param {Fraction} variance
 * @param {Words} words
 */
export function discreteGaussian(variance, words) {
  const t = root(variance.floor()) + 1n;
  const rate = new Fraction(1n, t);
  const centre = variance.over(new Fraction(t));
  const twice = variance.times(new Fraction(2n));
  for (;;) {
    const proposed = geometric(rate, words) - geometric(rate, words);
    const gap = new Fraction(proposed < 0n ? -proposed : proposed).minus(centre);
    if (fallingCoin(gap.times(gap).over(twice), words)) return proposed;
  }
}
