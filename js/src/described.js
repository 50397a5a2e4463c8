/** The parts of a description: what each of them must be, and what a device makes of it. */

import { fromHex } from "./bytes.js";
import { isWhole, kindOf, moment, only, whole } from "./fields.js";
import { Fraction } from "./fractions.js";
import { Numbers, Signs, Subset } from "./randomizers.js";
import { demand } from "./refused.js";

/** @typedef {import("./fields.js").Fields} Fields */

const KEY_BYTES = 32;
const MOST_STEPS = 1n << 45n;
const MOST_PLACES = 65;
const LARGEST_WEIGHT = 2 ** 53;

/** @param {unknown} said */
export function keyOf(said) {
  const { public: text, expires } = only(said, "a key", ["public", "expires"]);
  demand(
    typeof text === "string" && /^[0-9a-f]*$/.test(text) && text.length === 2 * KEY_BYTES,
    `a key must have ${KEY_BYTES} bytes.`,
  );
  return { public: fromHex(text), expires: expires === null ? null : moment(expires) };
}

/** @param {unknown} said */
export function promiseOf(said) {
  const fields = /** @type {Fields} */ (said);
  const isPure = fields?.kind === "pure";
  demand(
    isPure || fields?.kind === "approx",
    `this client answers under pure and approximate promises, not ${kindOf(said)}.`,
  );
  only(said, "the promise", isPure ? ["kind", "epsilon"] : ["kind", "epsilon", "delta"]);
  const epsilon = Fraction.typed(fields.epsilon);
  const delta = isPure ? new Fraction(0n) : Fraction.typed(fields.delta);
  demand(
    epsilon.n > 0n && epsilon.atMost(new Fraction(64n)) && delta.n >= 0n && delta.n < delta.d,
    "epsilon must be above 0 and at most 64, and delta below 1.",
  );
  return { epsilon, delta };
}

/** @param {unknown} said */
export function surveyOf(said) {
  const { name, version, expires } = only(said, "the survey", ["name", "version", "expires?"]);
  demand(
    typeof name === "string" && name.length > 0 && name.length <= 400,
    "a survey must have a name.",
  );
  return {
    name,
    version: whole(version, "version", 1, 2 ** 31),
    expires: expires === undefined ? null : moment(expires),
  };
}

/**
 * @param {Fields} domain
 * @returns {[Fraction, Fraction][]}
 */
export function boundsOf(domain) {
  const { bounds } = only(domain, "the domain", ["domain", "bounds"]);
  demand(Array.isArray(bounds) && bounds.length > 0, "a box must have bounds.");
  return bounds.map((/** @type {unknown} */ each) => {
    demand(Array.isArray(each) && each.length === 2, "bounds are two numbers a column.");
    const [lower, upper] = each.map((text) => Fraction.fromText(text));
    demand(lower.atMost(upper), "lower must not be above upper.");
    return /** @type {[Fraction, Fraction]} */ ([lower, upper]);
  });
}

/**
 * @param {unknown} said
 * @param {number} columns
 */
export function gridOf(said, columns) {
  const fields = only(said, "the grid", [
    "exponents",
    "centers",
    "lower",
    "upper",
    "multipliers",
    "fraction_bits",
  ]);
  /** @param {string} name @param {(value: bigint) => boolean} fits */
  const integers = (name, fits) => {
    const values = fields[name];
    demand(
      Array.isArray(values) && values.length === columns,
      `${name} of the grid must be one number a column.`,
    );
    const found = values.map((/** @type {unknown} */ value) =>
      isWhole(value) ? BigInt(value) : null,
    );
    demand(
      found.every((value) => value !== null && fits(value)),
      `${name} of the grid is not possible.`,
    );
    return /** @type {bigint[]} */ (found);
  };
  return {
    exponents: integers("exponents", (e) => -1200n <= e && e <= 1200n).map(Number),
    centers: integers("centers", () => true),
    lower: integers("lower", (low) => -MOST_STEPS <= low && low <= 0n),
    upper: integers("upper", (high) => 0n <= high && high <= MOST_STEPS),
    multipliers: integers("multipliers", (b) => 0n < b && b < 1n << 256n),
    fractionBits: whole(fields.fraction_bits, "fraction_bits", 0, 256),
  };
}

/** @param {Fields} said */
export function signsOf(said) {
  demand(
    said.codebook === "signs" && said.size === 2 && said.cap === 1,
    `this client has the codebook signs, not ${kindOf(said.codebook)}.`,
  );
  only(said, "the randomizer", [
    "kind",
    "domain",
    "center",
    "axes",
    "epsilon",
    "codebook",
    "size",
    "cap",
  ]);
  return new Signs({ ...lineOf(said), epsilon: said.epsilon });
}

/** @param {Fields} said */
function lineOf(said) {
  demand(
    said.domain?.domain === "box",
    `this client answers for boxes, not for ${kindOf(said.domain?.domain)}.`,
  );
  const [[lower, upper], ...more] = boundsOf(said.domain);
  demand(!more.length && said.center?.length === 1, "one column is expected.");
  const axis = Fraction.fromHexFloat(said.axes);
  demand(axis.n > 0n, "axes must be longer than 0.");
  return { lower, upper, center: Fraction.fromHexFloat(said.center[0]), axis };
}

/** @param {Fields} said */
export function numbersOf(said) {
  const line = lineOf(
    only(said, "the randomizer", [
      "kind",
      "domain",
      "center",
      "axes",
      "epsilon",
      "places",
      "first",
      "last",
      "weights",
      "values",
    ]),
  );
  const places = whole(said.places, "places", 2, MOST_PLACES);
  const size = said.values?.length;
  const isTable =
    [said.first, said.last, said.weights, said.values].every(
      (each) => Array.isArray(each) && each.length === size,
    ) &&
    size >= 2 &&
    size <= 256;
  demand(isTable, "a message must be one of 2 to 256 numbers.");
  const steps = said.values.map((/** @type {unknown} */ value, /** @type {number} */ index) => {
    pointOf(value);
    const last = whole(said.last[index], "last", 0, places - 1);
    return {
      first: whole(said.first[index], "first", 0, last),
      last,
      weight: BigInt(whole(said.weights[index], "weights", 1, LARGEST_WEIGHT)),
    };
  });
  const found = new Numbers({ ...line, epsilon: said.epsilon, places, steps });
  demand(found.keeps, "the description does not keep its promise: some answer tells more.");
  return found;
}

/** @param {Fields} said */
export function subsetOf(said) {
  only(said, "the randomizer", ["kind", "domain", "epsilon", "chosen"]);
  demand(
    said.domain?.domain === "points",
    `this client names sets of points, not of ${kindOf(said.domain?.domain)}.`,
  );
  const listed = only(said.domain, "the domain", ["domain", "points"]).points;
  const isTable =
    Array.isArray(listed) &&
    listed.length >= 2 &&
    listed.length <= 4096 &&
    listed.every((row) => Array.isArray(row) && row.length === listed[0].length && row.length);
  demand(isTable, "points must be from 2 to 4096 rows of numbers.");
  const points = listed.map((/** @type {unknown[]} */ row) => row.map((each) => pointOf(each)));
  const chosen = whole(said.chosen, "chosen", 1, Math.floor(points.length / 2));
  return new Subset({ points, chosen, epsilon: said.epsilon });
}

/** @param {unknown} text */
function pointOf(text) {
  return text === "0x0.0p+0" || text === "-0x0.0p+0"
    ? new Fraction(0n)
    : Fraction.fromHexFloat(text);
}
