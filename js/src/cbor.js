/**
 * Plain data as bytes in one way only: deterministic CBOR, RFC 8949 § 4.2.1.
 *
 * A number with a whole value from −2^63 to 2^64 − 1 is an integer, and −0 is 0; integers that a
 * double does not hold are BigInt, and beyond 64 bits bignums. `read` takes what `written` writes,
 * and nothing else. docs/wire.md.
 */

import { compared, joined, utf8 } from "./bytes.js";
import { Refused } from "./refused.js";

const [UNSIGNED, NEGATIVE, BYTES, TEXT, LIST, MAP, TAG, OTHER] = [0, 1, 2, 3, 4, 5, 6, 7];
const MOST_PARTS = 1 << 22;
const DEEPEST = 64;
const WORD = 1n << 64n;
const NOT_CBOR = "the bytes are not deterministic CBOR: cut short, or not written in the one way.";

/** @typedef {null | boolean | number | bigint | string | Uint8Array} Single */
/** @typedef {Single | Plain[] | {[key: string]: Plain}} Plain */

/**
 * @param {Plain} value
 * @param {number} [depth]
 * @returns {Uint8Array}
 */
export function written(value, depth = 0) {
  if (depth > DEEPEST) throw new Refused(`lists and maps must be at most ${DEEPEST} deep.`);
  if (value === false) return Uint8Array.of(0xf4);
  if (value === true) return Uint8Array.of(0xf5);
  if (value === null) return Uint8Array.of(0xf6);
  if (typeof value === "bigint") return integer(value);
  if (typeof value === "number") return number(value);
  if (typeof value === "string") return text(value);
  if (value instanceof Uint8Array) return joined(head(BYTES, BigInt(value.length)), value);
  if (Array.isArray(value)) {
    const parts = value.map((each) => written(each, depth + 1));
    return joined(head(LIST, BigInt(parts.length)), ...parts);
  }
  if (typeof value === "object") {
    const entries = Object.entries(value).map(
      ([key, each]) => /** @type {const} */ ([text(key), each]),
    );
    entries.sort(([first], [second]) => compared(first, second));
    const parts = entries.flatMap(([key, each]) => [key, written(each, depth + 1)]);
    return joined(head(MAP, BigInt(entries.length)), ...parts);
  }
  throw new Refused(`${typeof value} has no form in CBOR.`);
}

/**
 * @param {Uint8Array} data
 * @returns {Plain} maps are objects without a prototype
 */
export function read(data) {
  const reader = new Reader(data);
  const found = reader.item(0);
  if (reader.at !== data.length) throw new Refused(NOT_CBOR);
  return found;
}

/**
 * A kind and a number below 2^64, in as few bytes as they can have.
 *
 * @param {number} major
 * @param {bigint} argument
 */
function head(major, argument) {
  if (argument < 24n) return Uint8Array.of((major << 5) | Number(argument));
  const code =
    argument < 1n << 8n ? 24 : argument < 1n << 16n ? 25 : argument < 1n << 32n ? 26 : 27;
  return joined(Uint8Array.of((major << 5) | code), bigEndian(argument, 1 << (code - 24)));
}

/**
 * @param {bigint} value
 * @param {number} length
 */
function bigEndian(value, length) {
  const bytes = new Uint8Array(length);
  for (let at = length - 1, left = value; at >= 0; at--, left >>= 8n)
    bytes[at] = Number(left & 255n);
  return bytes;
}

/** @param {Uint8Array} bytes */
function fromBigEndian(bytes) {
  return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

/** @param {string} value */
function text(value) {
  if (!value.isWellFormed()) throw new Refused("a text of half characters cannot be written.");
  const encoded = utf8(value);
  return joined(head(TEXT, BigInt(encoded.length)), encoded);
}

/** @param {bigint} value */
function integer(value) {
  const [major, size] = value >= 0n ? [UNSIGNED, value] : [NEGATIVE, -1n - value];
  if (size < WORD) return head(major, size);
  const length = Math.ceil(size.toString(16).length / 2);
  const digits = bigEndian(size, length);
  return joined(head(TAG, value >= 0n ? 2n : 3n), head(BYTES, BigInt(length)), digits);
}

/** @param {number} value */
function number(value) {
  if (!Number.isFinite(value)) {
    throw new Refused("infinities and not-a-number have no form in what is signed.");
  }
  if (Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 64)
    return integer(BigInt(value));
  if (Math.fround(value) !== value) {
    const view = new DataView(new ArrayBuffer(9));
    view.setUint8(0, 0xfb);
    view.setFloat64(1, value);
    return new Uint8Array(view.buffer);
  }
  const view = new DataView(new ArrayBuffer(5));
  view.setUint8(0, 0xfa);
  view.setFloat32(1, value);
  const half = halved(view.getUint32(1));
  return half === null ? new Uint8Array(view.buffer) : Uint8Array.of(0xf9, half >> 8, half & 255);
}

/**
 * The bits of the half float that is the same number as a single one of these bits, or null.
 *
 * @param {number} bits
 */
function halved(bits) {
  const exponent = ((bits >>> 23) & 255) - 127;
  const mantissa = bits & 0x7fffff;
  const sign = (bits >>> 31) << 15;
  if (exponent >= -14 && exponent <= 15) {
    return mantissa & 0x1fff ? null : sign | ((exponent + 15) << 10) | (mantissa >>> 13);
  }
  if (exponent < -24 || exponent > 15) return null;
  const shift = -1 - exponent;
  const whole = mantissa | 0x800000;
  return whole & ((1 << shift) - 1) ? null : sign | (whole >>> shift);
}

/** @param {number} bits */
function fromHalf(bits) {
  const exponent = (bits >> 10) & 31;
  const mantissa = bits & 1023;
  const size = exponent ? (1024 + mantissa) * 2 ** (exponent - 25) : mantissa * 2 ** -24;
  return exponent === 31 ? NaN : bits >> 15 ? -size : size;
}

/** Reads one item after the other; every head is compared with how it would be written. */
class Reader {
  /** @param {Uint8Array} data */
  constructor(data) {
    this.data = data;
    this.at = 0;
    this.parts = 0;
  }

  /**
   * @param {number} depth
   * @returns {Plain}
   */
  item(depth) {
    if (depth > DEEPEST) throw new Refused(`lists and maps must be at most ${DEEPEST} deep.`);
    if (++this.parts > MOST_PARTS) throw new Refused("a description has too many parts.");
    const start = this.at;
    const [first] = this.take(1);
    const [major, code] = [first >> 5, first & 31];
    if (major === OTHER) return this.other(code, start);
    if (code > 27) throw new Refused(NOT_CBOR);
    const argument = code < 24 ? BigInt(code) : fromBigEndian(this.take(1 << (code - 24)));
    this.same(head(major, argument), start);
    if (major === UNSIGNED) return short(argument);
    if (major === NEGATIVE) return short(-1n - argument);
    if (major === TAG) return this.bignum(argument, start);
    const length = this.fitting(argument);
    if (major === BYTES) return this.take(length).slice();
    if (major === TEXT) return this.text(length);
    if (major === LIST) return Array.from({ length }, () => this.item(depth + 1));
    return this.map(length, depth);
  }

  /** @param {number} length */
  take(length) {
    if (length > this.data.length - this.at) throw new Refused(NOT_CBOR);
    this.at += length;
    return this.data.subarray(this.at - length, this.at);
  }

  /**
   * As many bytes or items as are said to follow, if there are bytes for them.
   *
   * @param {bigint} count
   */
  fitting(count) {
    if (count > BigInt(this.data.length - this.at)) throw new Refused(NOT_CBOR);
    return Number(count);
  }

  /**
   * @param {Uint8Array} expected
   * @param {number} start
   */
  same(expected, start) {
    if (compared(expected, this.data.subarray(start, this.at))) throw new Refused(NOT_CBOR);
  }

  /** @param {number} length */
  text(length) {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.take(length));
    } catch {
      throw new Refused(NOT_CBOR);
    }
  }

  /**
   * @param {number} count
   * @param {number} depth
   */
  map(count, depth) {
    const found = Object.create(null);
    let before = new Uint8Array(0);
    for (let left = count; left; left--) {
      const start = this.at;
      const key = this.item(depth + 1);
      const said = this.data.slice(start, this.at);
      if (typeof key !== "string" || compared(said, before) <= 0) throw new Refused(NOT_CBOR);
      before = said;
      found[key] = this.item(depth + 1);
    }
    return found;
  }

  /**
   * @param {bigint} tag
   * @param {number} start
   */
  bignum(tag, start) {
    const digits = this.item(DEEPEST);
    if ((tag !== 2n && tag !== 3n) || !(digits instanceof Uint8Array)) throw new Refused(NOT_CBOR);
    const size = fromBigEndian(digits);
    const value = tag === 2n ? size : -1n - size;
    this.same(integer(value), start);
    return value;
  }

  /**
   * @param {number} code
   * @param {number} start
   */
  other(code, start) {
    if (code === 20) return false;
    if (code === 21) return true;
    if (code === 22) return null;
    if (code < 25 || code > 27) throw new Refused(NOT_CBOR);
    const bytes = this.take(1 << (code - 24));
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    const found =
      code === 25
        ? fromHalf(view.getUint16(0))
        : code === 26
          ? view.getFloat32(0)
          : view.getFloat64(0);
    if (!Number.isFinite(found)) throw new Refused(NOT_CBOR);
    this.same(number(found), start);
    return found;
  }
}

/** @param {bigint} value */
function short(value) {
  const small = Number(value);
  return Number.isSafeInteger(small) ? small : value;
}
