/** Words for tests, keyed, so that a run repeats. */

import { createHash } from "node:crypto";

const AT_ONCE = 1024;

/**
 * @param {string} key
 * @returns {() => bigint}
 */
export function keyedWords(key) {
  let [block, at] = [0, AT_ONCE];
  /** @type {Buffer} */ let stream;
  return () => {
    if (at === AT_ONCE) {
      stream = createHash("shake256", { outputLength: 8 * AT_ONCE })
        .update(`${key} ${block++}`)
        .digest();
      at = 0;
    }
    return stream.readBigUInt64LE(8 * at++);
  };
}
