/** Bytes: as hexadecimal text, joined, compared, hashed. */

/** @param {Uint8Array} bytes */
export function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * @param {string} text hexadecimal digits
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function fromHex(text) {
  if (typeof text !== "string" || !/^([0-9a-f]{2})*$/.test(text)) {
    throw new TypeError("not hexadecimal");
  }
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/**
 * @param {Uint8Array[]} parts
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * Which of two byte strings comes first: below 0, 0 or above 0.
 *
 * @param {Uint8Array} first
 * @param {Uint8Array} second
 */
export function compared(first, second) {
  const length = Math.min(first.length, second.length);
  for (let at = 0; at < length; at++) {
    if (first[at] !== second[at]) return first[at] - second[at];
  }
  return first.length - second.length;
}

/** @param {string} text */
export function utf8(text) {
  return new TextEncoder().encode(text);
}

/**
 * @param {Uint8Array} bytes
 * @returns {Promise<Uint8Array>}
 */
export async function sha256(bytes) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", /** @type {BufferSource} */ (bytes)));
}

/** @param {number} length */
export function randomBytes(length) {
  return crypto.getRandomValues(new Uint8Array(length));
}
