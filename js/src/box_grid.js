/** A record of a box as whole numbers, all of it exact: docs/wire.md, "Records on the grid". */

import { Fraction, powerOfTwo, rootUp, fractionRootUp, floorDivided } from "./fractions.js";

/** 2^54 steps are as far as two records lie apart, before digits are dropped. */
const FRACTION_BITS = 54;
const WORD_BITS = 64;

/**
 * @typedef {object} Grid one number a column, but for fractionBits
 * @property {number[]} exponents
 * @property {bigint[]} centers
 * @property {bigint[]} lower
 * @property {bigint[]} upper
 * @property {bigint[]} multipliers
 * @property {number} fractionBits
 */

/**
 * The exact numbers of a record: q of every column, times its multiplier, rounded.
 *
 * @param {Grid} grid
 * @param {(number | null)[]} record
 */
export function exactNumbers(grid, record) {
  const bits = BigInt(grid.fractionBits);
  return record.map((value, column) => {
    const q = steps(grid, column, value);
    return (grid.multipliers[column] * q + ((1n << bits) >> 1n)) >> bits;
  });
}

/**
 * The integer nearest to (x − c)/2^e, halves to even, between the ends; 0 for what is missing.
 *
 * @param {Grid} grid
 * @param {number} column
 * @param {number | null} value
 */
function steps(grid, column, value) {
  if (value === null || !Number.isFinite(value)) return 0n;
  const scaled = Fraction.fromFloat(value).times(powerOfTwo(-grid.exponents[column]));
  const { n, d } = scaled.minus(new Fraction(grid.centers[column]));
  const down = floorDivided(n, d);
  const rest = 2n * (n - down * d);
  const q = rest > d || (rest === d && down & 1n) ? down + 1n : down;
  const [low, high] = [grid.lower[column], grid.upper[column]];
  return q < low ? low : q > high ? high : q;
}

/**
 * ⌊(v + u)/2^D⌋ for uniform u below 2^D, the first D bits of a word: up or down at random.
 *
 * @param {bigint} exact v
 * @param {number} bits one record moves the numbers 2^bits steps
 * @param {bigint} word
 */
export function rounded(exact, bits, word) {
  const dropped = BigInt(FRACTION_BITS - bits);
  return (exact + (word >> (BigInt(WORD_BITS) - dropped))) >> dropped;
}

/**
 * How far the numbers of a record move if it is replaced, ℓ₁ and ℓ₂, rounded up.
 *
 * @param {Grid} grid
 * @param {number} bits
 */
export function sensitivity(grid, bits) {
  const reach = grid.multipliers.map((b, column) => b * (grid.upper[column] - grid.lower[column]));
  const [r, t] = [BigInt(reach.length), BigInt(grid.fractionBits)];
  const inSteps = powerOfTwo(bits - FRACTION_BITS);
  const rootOfRows = fractionRootUp(new Fraction(r));
  const squares = reach.reduce((total, each) => total + each * each, 0n);
  const sum = reach.reduce((total, each) => total + each, 0n);
  /** @param {bigint} moved @param {bigint} rounding */
  const exact = (moved, rounding) =>
    new Fraction(moved, 1n << t).plus(new Fraction(t ? rounding : 0n)).times(inSteps);
  const l2 = exact(rootUp(squares), rootUp(r)).plus(rootOfRows);
  const [short, long] = [exact(sum, r).plus(new Fraction(r)), rootOfRows.times(l2)];
  return { l1: short.atMost(long) ? short : long, l2 };
}
