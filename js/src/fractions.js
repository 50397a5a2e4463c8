/** Exact fractions of BigInt, and what encloses a few irrational numbers between them. */

import { Refused } from "./refused.js";

const LONGEST = 400;

/** A number n/d, d > 0, not reduced. */
export class Fraction {
  /**
   * @param {bigint} n
   * @param {bigint} [d]
   */
  constructor(n, d = 1n) {
    if (d <= 0n) throw new RangeError("a denominator must be above 0");
    this.n = n;
    this.d = d;
  }

  /**
   * What "-3/4" or "16" says.
   *
   * @param {unknown} text
   */
  static fromText(text) {
    const parts =
      typeof text === "string" &&
      text.length <= LONGEST &&
      /^(-?[0-9]+)(?:\/([0-9]+))?$/.exec(text);
    if (!parts || /^0*$/.test(parts[2] ?? "1"))
      throw new Refused("a fraction must be written as '3/4'.");
    return new Fraction(BigInt(parts[1]), BigInt(parts[2] ?? "1"));
  }

  /**
   * A finite double, exactly.
   *
   * @param {number} value
   */
  static fromFloat(value) {
    const bits = new DataView(new ArrayBuffer(8));
    bits.setFloat64(0, value);
    const word = bits.getBigUint64(0);
    const biased = Number((word >> 52n) & 2047n);
    if (biased === 2047) throw new RangeError("not a finite number");
    const mantissa = (word & ((1n << 52n) - 1n)) | (biased ? 1n << 52n : 0n);
    return powerOfTwo(Math.max(biased, 1) - 1075).times(
      new Fraction(word >> 63n ? -mantissa : mantissa),
    );
  }

  /**
   * The decimal number that a double prints as: 0.1 is one tenth.
   *
   * @param {unknown} value
   */
  static typed(value) {
    if (typeof value !== "number" || !Number.isFinite(value))
      throw new Refused("a number is expected.");
    const [, sign, whole, part = "", exponent = "0"] = /** @type {RegExpExecArray} */ (
      /^(-?)([0-9]+)(?:\.([0-9]+))?(?:e([+-][0-9]+))?$/.exec(String(value))
    );
    const tens = Number(exponent) - part.length;
    const digits = BigInt(sign + whole + part);
    return tens >= 0
      ? new Fraction(digits * 10n ** BigInt(tens))
      : new Fraction(digits, 10n ** BigInt(-tens));
  }

  /**
   * What Python's float.hex writes, exactly: "-0x1.8p+1" is −3.
   *
   * @param {unknown} text
   */
  static fromHexFloat(text) {
    const parts =
      typeof text === "string" && /^(-?)0x([01])\.([0-9a-f]{1,13})p([+-][0-9]{1,4})$/.exec(text);
    if (!parts) throw new Refused("a number must be written as '0x1.8p+1'.");
    const digits = BigInt(`0x${parts[2]}${parts[3]}`);
    const size = new Fraction(parts[1] ? -digits : digits);
    return size.times(powerOfTwo(Number(parts[4]) - 4 * parts[3].length));
  }

  /** @param {Fraction} other */
  plus(other) {
    return new Fraction(this.n * other.d + other.n * this.d, this.d * other.d);
  }

  /** @param {Fraction} other */
  minus(other) {
    return new Fraction(this.n * other.d - other.n * this.d, this.d * other.d);
  }

  /** @param {Fraction} other */
  times(other) {
    return new Fraction(this.n * other.n, this.d * other.d);
  }

  /** @param {Fraction} other */
  over(other) {
    if (other.n === 0n) throw new RangeError("division by 0");
    const sign = other.n < 0n ? -1n : 1n;
    return new Fraction(sign * this.n * other.d, sign * this.d * other.n);
  }

  /** @param {Fraction} other */
  atMost(other) {
    return this.n * other.d <= other.n * this.d;
  }

  /** The largest whole number that is not above it. */
  floor() {
    return floorDivided(this.n, this.d);
  }
}

/** @param {number} exponent */
export function powerOfTwo(exponent) {
  return exponent >= 0
    ? new Fraction(1n << BigInt(exponent))
    : new Fraction(1n, 1n << BigInt(-exponent));
}

/**
 * @param {bigint} n
 * @param {bigint} d above 0
 */
export function floorDivided(n, d) {
  const quotient = n / d;
  return quotient * d > n ? quotient - 1n : quotient;
}

/** @param {bigint} value at least 0 */
export function bitLength(value) {
  return value === 0n ? 0 : value.toString(2).length;
}

/**
 * ⌊√value⌋.
 *
 * @param {bigint} value at least 0
 */
export function root(value) {
  if (value < 2n) return value;
  let found = 1n << BigInt(Math.ceil(bitLength(value) / 2));
  for (;;) {
    const next = (found + value / found) >> 1n;
    if (next >= found) return found;
    found = next;
  }
}

/**
 * The least whole number of at least √value.
 *
 * @param {bigint} value at least 0
 */
export function rootUp(value) {
  return value > 0n ? root(value - 1n) + 1n : 0n;
}

/**
 * √square, rounded up by less than 2^(1 − bits).
 *
 * @param {Fraction} square at least 0
 * @param {bigint} [bits]
 */
export function fractionRootUp(square, bits = 60n) {
  return new Fraction(root((square.n << (2n * bits)) / square.d) + 1n, 1n << bits);
}

/**
 * Encloses e^−(numerator/2^shift), numerator ≥ 0, between integers over 2^precision.
 *
 * With y = numerator/2^shift, e^−y = (e^−(y/2^j))^(2^j), where j makes y/2^j < 2^−8.
 *
 * @param {bigint} numerator
 * @param {bigint} shift
 * @param {bigint} precision
 * @returns {[bigint, bigint]}
 */
export function exponential(numerator, shift, precision) {
  const halvings = BigInt(Math.max(0, bitLength(numerator) - Number(shift) + 8));
  const working = precision + 64n;
  const small = (numerator << working) >> (shift + halvings);
  let total = 1n << working;
  let term = total;
  let count = 0n;
  while (term) {
    count += 1n;
    term = ((term * small) >> working) / count;
    total += count & 1n ? -term : term;
  }
  // Each term is at most 2 units too small, those left out are less than 2 together, and rounding
  // the argument costs at most 1.
  const slack = 2n * count + 3n;
  let [lower, upper] = [total - slack, total + slack];
  if (upper > 1n << working) upper = 1n << working;
  for (let left = halvings; left; left--) {
    [lower, upper] = [(lower * lower) >> working, -((-upper * upper) >> working)];
  }
  return [lower >> 64n, -(-upper >> 64n)];
}

/**
 * Encloses e^−amount, amount ≥ 0, between multiples of 2^−precision.
 *
 * @param {Fraction} amount
 * @param {bigint} precision
 * @returns {[Fraction, Fraction]}
 */
export function fallingExponential(amount, precision) {
  const scaled = new Fraction(amount.n << precision, amount.d);
  const up = -floorDivided(-scaled.n, scaled.d);
  const one = 1n << precision;
  const [least] = exponential(up, precision, precision);
  const [, most] = exponential(scaled.floor(), precision, precision);
  return [new Fraction(least, one), new Fraction(most, one)];
}

/**
 * g: at most e^ε, and less by no more than one part in 2^60, as is g − 1.
 *
 * @param {number} epsilon at least 1e-9; above 64 it is that of 64
 */
export function gain(epsilon) {
  if (!(epsilon >= 1e-9)) throw new Refused("epsilon must be at least 1e-9.");
  const [size, amount] =
    epsilon > 64 ? [64, new Fraction(64n)] : [epsilon, Fraction.typed(epsilon)];
  const bits = 66 + Math.max(0, Math.ceil(-Math.log2(size))) + Math.ceil(1.5 * size);
  const [, most] = fallingExponential(amount, BigInt(bits));
  return new Fraction(most.d, most.n);
}
