/** Descriptions changed in every place, and in any byte: refused in words, or answered. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fromHex } from "../src/bytes.js";
import { read, written } from "../src/cbor.js";
import { Refused } from "../src/refused.js";
import { Round } from "../src/round.js";
import { keyedWords } from "./keyed_words.js";

const file = new URL("../../docs/wire-vectors.json", import.meta.url);
const { descriptions, key } = JSON.parse(readFileSync(file, "utf8"));
const KEY = { public: fromHex(key.public), expires: null };
/** @type {any[]} */
const HOSTILE = [
  ...[null, true, 0, -1, 1, 3, 1.5, 1e-320, 1e300, 2 ** 31, 10n ** 25n, [], {}, [1], [[1]]],
  ...["", "x", "nan", "1e999", "0x1.8p+2000", "0x1.0p-1074", "1/0", "-1/2", "9".repeat(150), "٣"],
  ...["shares", "cap", "interval", "subset", "laplace", "gaussian", "box", "points", "local", "shuffle"],
  ...[{ kind: "pure", epsilon: 1e9 }, new Uint8Array(3), { __proto__: null, constructor: 1 }],
];

/**
 * Refused (false), or taken and answered (true); any other error is a failure.
 *
 * @param {Uint8Array} description
 */
async function isTaken(description) {
  try {
    const { randomizer } = await Round.fromDescription(description, KEY);
    const payload = randomizer.payload(new Array(randomizer.dim).fill(0.5), keyedWords("hostile"));
    assert.ok(payload.length);
    return true;
  } catch (error) {
    if (error instanceof Refused) return false;
    throw error;
  }
}

/**
 * All places of plain data, each as the keys that lead there.
 *
 * @param {any} value
 * @returns {(string | number)[][]}
 */
function places(value) {
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return [];
  return Object.keys(value).flatMap((name) => [
    [name],
    ...places(value[name]).map((place) => [name, ...place]),
  ]);
}

for (const name of ["one column", "one column, local", "few numbers", "places", "three columns of a survey"]) {
  test(`a description that is changed anywhere is refused or answered: ${name}`, async () => {
    const original = fromHex(descriptions[name].cbor);
    assert.ok(await isTaken(original));
    for (const place of places(read(original))) {
      for (const value of HOSTILE) {
        const fields = /** @type {any} */ (read(original));
        const last = /** @type {string} */ (place.at(-1));
        const inside = place.slice(0, -1).reduce((found, step) => found[step], fields);
        inside[last] = value;
        await isTaken(written(fields));
        if (Array.isArray(inside)) inside.splice(Number(last), 1);
        else delete inside[last];
        await isTaken(written(fields));
      }
    }
  });
}

test("bytes that are changed anywhere are refused or answered", async () => {
  const words = keyedWords("bytes");
  for (const { cbor } of Object.values(descriptions)) {
    for (let time = 0; time < 300; time++) {
      const bytes = fromHex(cbor);
      bytes[Number(words() % BigInt(bytes.length))] ^= Number((words() % 255n) + 1n);
      await isTaken(bytes);
      await isTaken(bytes.subarray(0, Number(words() % BigInt(bytes.length))));
    }
  }
});
