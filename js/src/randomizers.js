/**
 * What a device does with a record, for the randomizers that this client has: docs/wire.md.
 *
 * Each is made of the description's fields by `randomizerOf`, and has
 *
 *     dim             the numbers of a record
 *     groups          of every piece that is sealed by itself, with which others it is mixed
 *     payload(record, words)      the bytes of a record
 *     pieces(nonce, payload)      what is sealed, each by itself
 */

import { joined } from "./bytes.js";
import { exactNumbers, rounded } from "./box_grid.js";
import { Fraction, floorDivided, gain } from "./fractions.js";
import { coin, discreteGaussian, laplacePart } from "./random.js";

/** @typedef {import("./random.js").Words} Words */
/** @typedef {(number | null)[]} Row a record; null stands for a missing number */

/**
 * @typedef {object} Noise of `honest` people together, and what numbers with it are split into
 * @property {string} law "laplace" or "gaussian"
 * @property {Fraction} parameter the rate of all noise, or the variance of one person's part
 * @property {bigint} honest
 * @property {number} modulusBits
 * @property {number} fragments of every number
 */

const FRAGMENT_BYTES = 8;
const PLACE_BITS = 53n;
const WORD_BITS = 64n;
const LARGEST_EPSILON = 10;
const SPARED = new Fraction((1n << 16n) - 1n, 1n << 16n);

/** Numbers of a box with a part of the noise, in fragments that are uniform but for their sums. */
export class Fragments {
  /**
   * @param {object} described
   * @param {import("./box_grid.js").Grid} described.grid
   * @param {number} described.bits
   * @param {Noise} described.noise
   */
  constructor({ grid, bits, noise }) {
    this.grid = grid;
    this.bits = bits;
    this.noise = noise;
    this.dim = grid.exponents.length;
    this.width = Math.ceil(noise.modulusBits / 8);
  }

  get groups() {
    return Array.from({ length: this.dim * this.noise.fragments }, (_, place) =>
      Math.floor(place / this.noise.fragments),
    );
  }

  /**
   * @param {Row} record
   * @param {Words} words
   */
  payload(record, words) {
    const exact = exactNumbers(this.grid, record);
    const numbers = exact.map((v) => rounded(v, this.bits, words()) + this.part(words));
    const others = numbers.map(() => Array.from({ length: this.noise.fragments - 1 }, words));
    return this.packed(numbers.map((number, index) => this.split(number, others[index])));
  }

  /**
   * This person's part of the noise of one sum.
   *
   * @param {Words} words
   */
  part(words) {
    const { law, parameter, honest } = this.noise;
    return law === "laplace"
      ? laplacePart(parameter, honest, words)
      : discreteGaussian(parameter, words);
  }

  /**
   * Fragments modulo 2^k that add up to a number: what is missing, and uniform ones.
   *
   * @param {bigint} number
   * @param {bigint[]} others
   */
  split(number, others) {
    const missing = others.reduce((left, word) => left - word, number);
    return [missing, ...others].map((each) => BigInt.asUintN(this.noise.modulusBits, each));
  }

  /** @param {bigint[][]} fragments */
  packed(fragments) {
    return joined(...fragments.flat().map((each) => littleEndian(each, this.width)));
  }

  /**
   * @param {Uint8Array} _nonce
   * @param {Uint8Array} payload
   */
  pieces(_nonce, payload) {
    return this.groups.map((_, place) => {
      const piece = new Uint8Array(FRAGMENT_BYTES);
      piece.set(payload.subarray(place * this.width, (place + 1) * this.width));
      return piece;
    });
  }
}

/** What messages have in common that are private as they stand: they are sealed whole. */
class Single {
  groups = [0];

  /**
   * @param {Uint8Array} nonce
   * @param {Uint8Array} payload
   */
  pieces(nonce, payload) {
    return [joined(nonce, payload)];
  }
}

/**
 * @typedef {object} Line one column, and its map to the numbers from −1 to 1
 * @property {Fraction} lower
 * @property {Fraction} upper
 * @property {Fraction} center
 * @property {Fraction} axis
 */

/** What messages about one column have in common. */
class OneColumn extends Single {
  dim = 1;

  /** @param {Line} line */
  constructor({ lower, upper, center, axis }) {
    super();
    this.lower = lower;
    this.upper = upper;
    this.center = center;
    this.axis = axis;
  }

  /**
   * The record between −1 and 1, or nearly so.
   *
   * @param {number | null} value
   */
  moved(value) {
    let x = this.lower.plus(this.upper).over(new Fraction(2n));
    if (value !== null && Number.isFinite(value)) {
      x = Fraction.fromFloat(value);
      if (x.atMost(this.lower)) x = this.lower;
      if (this.upper.atMost(x)) x = this.upper;
    }
    return x.minus(this.center).over(this.axis);
  }
}

/** One column: which end of an interval about the record, +1 (0) or −1 (1). */
export class Signs extends OneColumn {
  /** @param {Line & { epsilon: number }} described */
  constructor({ epsilon, ...line }) {
    super(line);
    const g = gain(epsilon);
    const one = new Fraction(1n);
    this.favour = g.minus(one).over(g.plus(one));
  }

  /**
   * As many words are drawn whatever the record is.
   *
   * @param {Row} record
   * @param {Words} words
   */
  payload([value], words) {
    const { place, sign } = this.point(value);
    const anyone = Number(words() >> 63n);
    const reached = words() >> (64n - PLACE_BITS);
    const heeded = coin(this.favour, words) && reached < place;
    return Uint8Array.of(heeded ? sign : anyone);
  }

  /**
   * |y| in units of 2^−53, at most 2^53 (which the promise rests on), and the sign of y.
   *
   * @param {number | null} value
   */
  point(value) {
    const y = this.moved(value);
    const size = floorDivided((y.n < 0n ? -y.n : y.n) << PLACE_BITS, y.d);
    const most = 1n << PLACE_BITS;
    return { place: size < most ? size : most, sign: y.n < 0n ? 1 : 0 };
  }
}

/** One column: one of a few public numbers, likelier if the record is on the number's own step. */
export class Numbers extends OneColumn {
  /**
   * @param {Line & { epsilon: number, places: number, steps: Step[] }} described
   *
   * @typedef {object} Step of places, from the first to the last, and how often it is named off it
   * @property {number} first
   * @property {number} last
   * @property {bigint} weight
   */
  constructor({ epsilon, places, steps, ...line }) {
    super(line);
    this.places = places;
    const g = gain(Math.min(epsilon, LARGEST_EPSILON)).times(SPARED);
    this.ends = Array.from({ length: places }, (_, place) => {
      let sum = 0n;
      const sums = steps.map(({ first, last, weight }) => {
        sum += weight * (first <= place && place <= last ? g.n : g.d);
        return sum;
      });
      return sums.slice(0, -1).map((each) => (each << WORD_BITS) / sum);
    });
    this.keeps = this.isWithin(gain(epsilon));
  }

  /**
   * Whether no number is likelier at one place than at another by more than a factor.
   *
   * @param {Fraction} factor
   */
  isWithin(factor) {
    const chances = this.ends.map((ends) =>
      [...ends, 1n << WORD_BITS].map((end, index) => end - (index ? ends[index - 1] : 0n)),
    );
    return chances[0].every((_, index) => {
      const [first, ...others] = chances.map((row) => row[index]);
      const least = others.reduce((low, each) => (each < low ? each : low), first);
      const most = others.reduce((high, each) => (each > high ? each : high), first);
      return most * factor.d <= least * factor.n;
    });
  }

  /**
   * Two words are drawn whatever the record is.
   *
   * @param {Row} record
   * @param {Words} words
   */
  payload([value], words) {
    const { place, part } = this.between(value);
    const up = words() >> (WORD_BITS - PLACE_BITS) < part;
    const word = words();
    const ends = this.ends[place + Number(up)];
    return Uint8Array.of(ends.reduce((index, end) => index + Number(end <= word), 0));
  }

  /**
   * The place below, and how often it is the next, in units of 2^−53.
   *
   * @param {number | null} value
   */
  between(value) {
    const last = BigInt(this.places - 1);
    const y = this.moved(value);
    const along = new Fraction((y.n + y.d) * last, 2n * y.d);
    let place = floorDivided(along.n, along.d);
    if (place < 0n) return { place: 0, part: 0n };
    if (place >= last) place = last - 1n;
    const part = floorDivided((along.n - place * along.d) << PLACE_BITS, along.d);
    const most = 1n << PLACE_BITS;
    return { place: Number(place), part: part < most ? part : most };
  }
}

/** One of a few points: a set of `chosen` of them, in which the record's own is more often. */
export class Subset extends Single {
  /**
   * @param {object} described
   * @param {Fraction[][]} described.points
   * @param {number} described.chosen
   * @param {number} described.epsilon
   */
  constructor({ points, chosen, epsilon }) {
    super();
    this.points = points;
    this.chosen = chosen;
    this.dim = points[0].length;
    const favoured = gain(epsilon).times(new Fraction(BigInt(chosen)));
    this.keep = favoured.over(favoured.plus(new Fraction(BigInt(points.length - chosen))));
  }

  /**
   * @param {Row} record
   * @param {Words} words
   */
  payload(record, words) {
    const own = this.nearest(record);
    const kept = coin(this.keep, words);
    const others = this.points.map((_, index) => index).filter((index) => index !== own);
    const named = smallestKeys(others, this.chosen - Number(kept), words);
    const bits = new Uint8Array(Math.ceil(this.points.length / 8));
    for (const index of kept ? [own, ...named] : named) bits[index >> 3] |= 1 << (index & 7);
    return bits;
  }

  /**
   * The point at the least distance, the first of them at a tie; a number that is missing is that
   * of the mean of all points.
   *
   * @param {Row} record
   */
  nearest(record) {
    const count = new Fraction(BigInt(this.points.length));
    const place = record.map((value, axis) => {
      if (value !== null && Number.isFinite(value)) return Fraction.fromFloat(value);
      return this.points
        .reduce((total, point) => total.plus(point[axis]), new Fraction(0n))
        .over(count);
    });
    const squares = this.points.map((point) =>
      point.reduce((total, x, axis) => {
        const gap = x.minus(place[axis]);
        return total.plus(gap.times(gap));
      }, new Fraction(0n)),
    );
    return squares.reduce(
      (best, square, index) => (squares[best].atMost(square) ? best : index),
      0,
    );
  }
}

/**
 * Those of so many smallest keys, which are uniform and drawn again if two are equal.
 *
 * @param {number[]} things
 * @param {number} count
 * @param {Words} words
 */
function smallestKeys(things, count, words) {
  for (;;) {
    const keyed = things.map((thing) => ({ thing, key: words() }));
    if (new Set(keyed.map(({ key }) => key)).size < things.length) continue;
    keyed.sort((first, second) => (first.key < second.key ? -1 : 1));
    return keyed.slice(0, count).map(({ thing }) => thing);
  }
}

/**
 * @param {bigint} value
 * @param {number} length
 */
function littleEndian(value, length) {
  return Uint8Array.from({ length }, (_, at) => Number((value >> BigInt(8 * at)) & 255n));
}
