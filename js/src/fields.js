/** Fields of a description, each looked at before it is used; what is wrong is refused. */

import { compared } from "./bytes.js";
import { written } from "./cbor.js";
import { demand } from "./refused.js";

/** @typedef {{[key: string]: any}} Fields */

/**
 * The fields of a map that has these and no others; "name?" may be left out.
 *
 * @param {unknown} said
 * @param {string} what
 * @param {string[]} names
 * @returns {Fields}
 */
export function only(said, what, names) {
  const isMap =
    said !== null &&
    typeof said === "object" &&
    !Array.isArray(said) &&
    !(said instanceof Uint8Array);
  demand(isMap, `${what} is not well described.`);
  const known = names.map((name) => name.replace("?", ""));
  const lacking = names.filter((name) => !name.endsWith("?") && !(name in said));
  const unknown = Object.keys(said).filter((name) => !known.includes(name));
  demand(!lacking.length && !unknown.length, `${what} must have the fields ${known.join(", ")}.`);
  return /** @type {Fields} */ (said);
}

/**
 * @param {unknown} value
 * @returns {value is number | bigint}
 */
export function isWhole(value) {
  return Number.isInteger(value) || typeof value === "bigint";
}

/**
 * @param {unknown} value
 * @param {string} name
 * @param {number} least
 * @param {number} most
 */
export function whole(value, name, least, most) {
  const fits =
    typeof value === "number" && Number.isInteger(value) && least <= value && value <= most;
  demand(fits, `${name} must be a whole number from ${least} to ${most}.`);
  return /** @type {number} */ (value);
}

/** @param {unknown} text */
export function moment(text) {
  const isMoment = typeof text === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text);
  const found = isMoment ? Date.parse(text) : NaN;
  demand(Number.isFinite(found), "a moment must be written as 2027-01-01T00:00:00Z.");
  return found;
}

/**
 * @param {any} first
 * @param {any} second
 */
export function alike(first, second) {
  return (
    first !== undefined && second !== undefined && compared(written(first), written(second)) === 0
  );
}

/** What a refusal calls something: its kind, if it has a short one. @param {any} said */
export function kindOf(said) {
  const kind = said !== null && typeof said === "object" ? said.kind : said;
  return typeof kind === "string" && /^[a-z0-9-]{1,40}$/.test(kind)
    ? `'${kind}'`
    : "what is described";
}
