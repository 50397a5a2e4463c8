/** Numbers m·2^e of 192 bits, whose arithmetic rounds upwards, or downwards where it is said. */

import { bitLength, Fraction, powerOfTwo } from "./fractions.js";

const BITS = 192;

export class Rounded {
  /**
   * @param {bigint} m at least 0
   * @param {number} [e]
   * @param {boolean} [down]
   */
  constructor(m, e = 0, down = false) {
    const excess = bitLength(m) - BITS;
    if (excess > 0) {
      const shift = BigInt(excess);
      const short = m >> shift;
      this.m = down || short << shift === m ? short : short + 1n;
      this.e = e + excess;
    } else {
      this.m = m;
      this.e = e;
    }
  }

  /** @param {Rounded} other */
  plus(other) {
    const [high, low] = this.e >= other.e ? [this, other] : [other, this];
    const apart = high.e - low.e;
    // What is far below the last digit is as good as one unit of it.
    if (apart > 2 * BITS && high.m)
      return new Rounded((high.m << BigInt(BITS)) + 1n, high.e - BITS);
    return new Rounded((high.m << BigInt(apart)) + low.m, low.e);
  }

  /**
   * @param {Rounded} other
   * @param {boolean} [down]
   */
  times(other, down = false) {
    return new Rounded(this.m * other.m, this.e + other.e, down);
  }

  /**
   * @param {Rounded} other above 0
   * @param {boolean} [down]
   */
  over(other, down = false) {
    const shifted = this.m << BigInt(2 * BITS);
    const quotient = shifted / other.m;
    const exact = quotient * other.m === shifted || down;
    return new Rounded(exact ? quotient : quotient + 1n, this.e - other.e - 2 * BITS, down);
  }

  /** 1 − this, rounded down, for what is at most 1. */
  fromOne() {
    const exact = this.fraction();
    const left = new Fraction(exact.d - exact.n, exact.d);
    return new Rounded((left.n << BigInt(BITS)) / left.d, -BITS, true);
  }

  /** @param {Rounded} other */
  atMost(other) {
    const [shift, others] = this.e >= other.e ? [this.e - other.e, 0] : [0, other.e - this.e];
    return this.m << BigInt(shift) <= other.m << BigInt(others);
  }

  /** @param {Rounded} other */
  or(other) {
    return this.atMost(other) ? other : this;
  }

  fraction() {
    return powerOfTwo(this.e).times(new Fraction(this.m));
  }
}
