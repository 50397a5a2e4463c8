/**
 * How much mixed fragments tell beyond their sums: η = ½·√(e_h − 1) in total variation, with
 *
 *     e_1 = 1,    e_k = 1 + q·Σ_{0<j<k} (j/k)·ρ_j(k)·e_{k−j},    ρ_j(k) = C(k, j)²/C(mk, mj),
 *
 * for h people, m fragments a number and the modulus q. All that is computed here is an upper
 * bound; docs/proofs/shuffle-sums.md of muhat proves it, and the doubling beyond the list.
 */

import { Fraction } from "./fractions.js";
import { Rounded } from "./rounded_up.js";

const LISTS = [32, 64, 128, 256, 512, 1024];
const ONE = new Rounded(1n);
const ZERO = new Rounded(0n);

/**
 * Whether η is at most `within` for the sums of r numbers a person.
 *
 * @param {number} honest h
 * @param {number} fragments m
 * @param {bigint} modulus q
 * @param {number} numbers r
 * @param {Fraction} within
 */
export function tellsAtMost(honest, fragments, modulus, numbers, within) {
  if (honest === 1) return true;
  const r = new Fraction(BigInt(numbers));
  const limit = new Fraction(4n).times(within).times(within);
  return LISTS.some((last, index) => {
    if (index && honest <= LISTS[index - 1]) return false;
    const listed = list(fragments, modulus, Math.min(honest, last));
    const excess = honest <= last ? listed[honest] : beyond(honest, fragments, modulus, listed);
    if (excess === null) return false;
    // (1 + x)^r ≤ e^{rx} ≤ 1/(1 − rx).
    const all = r.times(excess.fraction());
    if (new Fraction(1n).atMost(all)) return false;
    const together = numbers === 1 ? all : all.over(new Fraction(1n).minus(all));
    return together.atMost(limit);
  });
}

/**
 * e_k − 1 for k = 1, …, last; the entry 0 is not used. With a_j = (mj)!/j!² it is
 * ρ_j(k) = a_j·a_{k−j}/a_k.
 *
 * @param {number} m
 * @param {bigint} q
 * @param {number} last
 */
function list(m, q, last) {
  const found = [ZERO, ZERO];
  const above = [ONE];
  const [weighted, reached] = [[ZERO], [ZERO]];
  let below = ONE;
  for (let k = 1; k <= last; k++) {
    const factor = new Rounded(product(m * (k - 1) + 1, m * k));
    const exactFactor = new Rounded(product(m * (k - 1) + 1, m * k), 0, true);
    const square = new Rounded(BigInt(k * k));
    above.push(above[k - 1].times(factor).over(square));
    below = below.times(exactFactor, true).over(square, true);
    if (k > 1) {
      let total = ZERO;
      for (let j = 1; j < k; j++) total = total.plus(weighted[j].times(reached[k - j]));
      found.push(total.times(new Rounded(q)).over(below.times(new Rounded(BigInt(k)), true)));
    }
    weighted.push(above[k].times(new Rounded(BigInt(k))));
    reached.push(above[k].times(ONE.plus(found[k])));
  }
  return found;
}

/**
 * e_h − 1 for an h beyond the list, or null. From bounds up to `top` follow those up to
 * 2·top.
 *
 * @param {number} h
 * @param {number} m
 * @param {bigint} q
 * @param {Rounded[]} listed
 */
function beyond(h, m, q, listed) {
  let top = listed.length - 1;
  let before = ONE.plus(largestOf(listed.slice(Math.floor(top / 2))));
  let largest = ONE.plus(largestOf(listed));
  for (;;) {
    const { fixed, slope } = sums(top, m, q, listed, largest);
    if (!slope.times(new Rounded(2n)).atMost(ONE)) return null;
    const alone = ONE.plus(fixed);
    const after = alone.over(slope.fromOne()).or(alone.plus(slope.times(before)));
    if (h <= 2 * top) {
      const last = sums(h, m, q, listed, largest);
      const found = last.fixed.plus(last.slope.times(before.or(after)));
      return found.atMost(ONE) ? found : null;
    }
    top *= 2;
    before = after;
    largest = largest.or(after);
  }
}

/**
 * a and b with e_i ≤ 1 + a + b·N for all i in [k, 2k], N the largest of e_{i/2}, …, e_{i−1}.
 *
 * @param {number} k
 * @param {number} m
 * @param {bigint} q
 * @param {Rounded[]} listed
 * @param {Rounded} largest
 */
function sums(k, m, q, listed, largest) {
  let [fixed, slope, ratio] = [ZERO, ZERO, new Rounded(q)];
  const whole = new Rounded(BigInt(k));
  for (let j = 1; j <= Math.floor(listed.length / 2); j++) {
    const rises = new Rounded(BigInt(k - j + 1) ** 2n * product(m * (j - 1) + 1, m * j));
    const falls = BigInt(j) ** 2n * product(m * (k - j) + 1, m * (k - j + 1));
    ratio = ratio.times(rises).over(new Rounded(falls, 0, true));
    fixed = fixed.plus(ratio.times(ONE.plus(listed[j])));
    slope = slope.plus(ratio.times(new Rounded(BigInt(j))).over(whole));
  }
  return {
    fixed: fixed.plus(ratio.times(whole).times(largest)),
    slope: slope.plus(ratio.times(whole)),
  };
}

/**
 * @param {number} first
 * @param {number} last
 */
function product(first, last) {
  let found = 1n;
  for (let each = first; each <= last; each++) found *= BigInt(each);
  return found;
}

/** @param {Rounded[]} values */
function largestOf(values) {
  return values.reduce((largest, each) => largest.or(each), ZERO);
}
