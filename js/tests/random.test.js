/**
 * Draws have the laws that they are said to have. Words are keyed, so that a run repeats; the
 * bounds are those of a chance of 1e-7 a comparison, and wrong laws are found by a wide margin.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Fraction } from "../src/fractions.js";
import {
  below,
  coin,
  discreteGaussian,
  fallingCoin,
  geometric,
  laplacePart,
  systemWords,
} from "../src/random.js";
import { keyedWords } from "./keyed_words.js";

const DRAWS = 20_000;
/** What a normal number is above with a chance of 1e-7. */
const QUANTILE = 5.2;

/**
 * Whether χ² over the cells with an expectation of at least 10 is one of this law, as seen from
 * Wilson and Hilferty's cube root.
 *
 * @param {(bigint | number)[]} found
 * @param {(value: number) => number} chance
 */
function fits(found, chance) {
  const counts = new Map();
  for (const each of found) counts.set(Number(each), (counts.get(Number(each)) ?? 0) + 1);
  let [square, cells, seen, expected] = [0, 0, 0, 0];
  for (let value = -400; value <= 400; value++) {
    const wanted = chance(value) * found.length;
    if (wanted < 10) continue;
    square += ((counts.get(value) ?? 0) - wanted) ** 2 / wanted;
    [cells, seen, expected] = [cells + 1, seen + (counts.get(value) ?? 0), expected + wanted];
  }
  const rest = found.length - expected;
  if (rest >= 10) [square, cells] = [square + (found.length - seen - rest) ** 2 / rest, cells + 1];
  const freedom = cells - 1;
  const normal =
    (Math.cbrt(square / freedom) - (1 - 2 / (9 * freedom))) / Math.sqrt(2 / (9 * freedom));
  return Math.abs(normal) < QUANTILE;
}

/**
 * @template T
 * @param {string} key
 * @param {(words: () => bigint) => T} draw
 * @param {number} [count]
 */
function drawn(key, draw, count = DRAWS) {
  const words = keyedWords(key);
  return Array.from({ length: count }, () => draw(words));
}

test("numbers below a bound are equally likely", () => {
  const found = drawn("below", (words) => below(7n, words));
  assert.ok(fits(found, (k) => (k >= 0 && k < 7 ? 1 / 7 : 0)));
  assert.ok(!fits(found, (k) => (k >= 0 && k < 8 ? 1 / 8 : 0)));
  const large = drawn("large", (words) => below(1n << 100n, words), 200);
  assert.ok(large.every((each) => each < 1n << 100n) && large.some((each) => each >> 99n));
  assert.equal(
    below(1n, () => assert.fail()),
    0n,
  );
});

test("a coin has its probability, and as many bits as that takes", () => {
  const found = drawn("coin", (words) => Number(coin(new Fraction(2n, 7n), words)));
  assert.ok(fits(found, (k) => [5 / 7, 2 / 7][k] ?? 0));
  assert.ok(!fits(found, (k) => [0.69, 0.31][k] ?? 0));
  assert.equal(
    coin(new Fraction(1n), () => assert.fail()),
    true,
  );
  assert.equal(
    coin(new Fraction(0n), () => 0n),
    false,
  );
  const third = (1n << 64n) / 3n;
  const words = [third, third, third - 1n];
  assert.equal(
    coin(new Fraction(1n, 3n), () => words.shift() ?? 0n),
    true,
  );
  assert.equal(words.length, 0);
});

test("a coin of e^−x", () => {
  for (const [n, d] of [
    [1n, 3n],
    [1n, 1n],
    [5n, 2n],
  ]) {
    const found = drawn(`falling ${n}/${d}`, (words) =>
      Number(fallingCoin(new Fraction(n, d), words)),
    );
    const heads = Math.exp(-Number(n) / Number(d));
    assert.ok(fits(found, (k) => [1 - heads, heads][k] ?? 0));
    assert.ok(!fits(found, (k) => [1.03 - heads, heads - 0.03][k] ?? 0));
  }
});

test("geometric numbers", () => {
  const found = drawn("geometric", (words) => geometric(new Fraction(3n, 10n), words));
  /** @param {number} rate */
  const law = (rate) => (/** @type {number} */ k) =>
    k < 0 ? 0 : (1 - Math.exp(-rate)) * Math.exp(-rate * k);
  assert.ok(fits(found, law(0.3)));
  assert.ok(!fits(found, law(0.35)));
});

test("parts of Laplace noise add up to it", () => {
  const rate = new Fraction(1n, 4n);
  const parts = drawn("parts", (words) => laplacePart(rate, 3n, words), 3 * DRAWS);
  const sums = parts
    .filter((_, at) => at % 3 === 0)
    .map((each, at) => each + parts[3 * at + 1] + parts[3 * at + 2]);
  /** @param {number} r */
  const law = (r) => (/** @type {number} */ k) => Math.tanh(r / 2) * Math.exp(-r * Math.abs(k));
  assert.ok(fits(sums, law(0.25)));
  assert.ok(!fits(sums, law(0.29)));
});

test("discrete normal noise", () => {
  for (const variance of [5, 50.25]) {
    const exact = new Fraction(BigInt(4 * variance), 4n);
    const found = drawn(`normal ${variance}`, (words) => discreteGaussian(exact, words));
    /** @param {number} square */
    const law = (square) => (/** @type {number} */ k) =>
      Math.exp((-k * k) / (2 * square)) / Math.sqrt(2 * Math.PI * square);
    assert.ok(fits(found, law(variance)));
    assert.ok(!fits(found, law(1.25 * variance)));
  }
});

test("words of the system have 64 bits", () => {
  const found = Array.from({ length: 64 }, systemWords);
  assert.ok(found.every((word) => word >= 0n && word < 1n << 64n));
  assert.equal(new Set(found).size, 64); // two of them are equal with a chance below 1e-15
});
