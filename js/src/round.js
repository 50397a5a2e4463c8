/**
 * A round as a device takes it: what a signer that it knows has signed, if it is well described,
 * keeps what it promises, and asks for what this client can do. docs/wire.md.
 */

import { fromHex, joined, sha256, utf8 } from "./bytes.js";
import { read, written } from "./cbor.js";
import {
  boundsOf,
  gridOf,
  keyOf,
  numbersOf,
  promiseOf,
  signsOf,
  subsetOf,
  surveyOf,
} from "./described.js";
import { alike, kindOf, only, whole } from "./fields.js";
import { Fraction } from "./fractions.js";
import { keepsMixed } from "./promises.js";
import { Fragments } from "./randomizers.js";
import { Refused, demand } from "./refused.js";
import { sealedLabel } from "./sealing.js";

const SCHEMA = "muhat.protocol/2";
const SIGNED_SCHEMA = "muhat.signed/2";
const MAGIC = utf8("MH");
const VERSION = 1;
const LONGEST = 1 << 26;
const FINEST = 44;
const ALONE = new Map([
  ["cap", signsOf],
  ["interval", numbersOf],
  ["subset", subsetOf],
]);
const TASK = ["schema", "model", "privacy", "estimator", "survey"];

/** @typedef {{epsilon: Fraction, delta: Fraction}} Promised */
/** @typedef {{name: string, version: number, expires: number | null}} Survey */
/** @typedef {import("./fields.js").Fields} Fields */

export class Round {
  /**
   * The round that bytes describe, if `signer` has signed them.
   *
   * @param {Uint8Array} signed
   * @param {string} signer the 64 hexadecimal digits of its public key, known beforehand
   */
  static async fromSigned(signed, signer) {
    demand(
      signed instanceof Uint8Array && signed.length <= LONGEST,
      "a signed description is bytes, of which there are at most 2^26.",
    );
    const fields = only(read(signed), "a signed description", [
      "schema",
      "description",
      "key",
      "signature",
    ]);
    demand(fields.schema === SIGNED_SCHEMA, `the schema is not ${SIGNED_SCHEMA}.`);
    demand(fields.description instanceof Uint8Array, "the description is not bytes.");
    await verify(fields, signer);
    const key = keyOf(fields.key);
    return Round.fromDescription(fields.description, key);
  }

  /**
   * The round of a description that is trusted, and the key that its answers are sealed to.
   *
   * @param {Uint8Array} description
   * @param {{public: Uint8Array, expires: number | null}} key
   */
  static async fromDescription(description, key) {
    const fields = only(read(description), "a description", [
      ...[
        "schema",
        "model",
        "privacy",
        "estimator",
        "round",
        "users",
        "minimum",
        "randomizer",
        "learnt",
      ],
      ...["survey?", "honest?"],
    ]);
    const made = new Round(fields, key);
    made.digest = await sha256(description);
    made.label = joined(MAGIC, Uint8Array.of(VERSION, made.number), made.digest.subarray(0, 8));
    made.sealedLabel = await sealedLabel(made.number, made.digest, key.public);
    const common = TASK.filter((name) => name in fields).map((name) => [name, fields[name]]);
    made.task = await sha256(written(Object.fromEntries(common)));
    return made;
  }

  /**
   * For `fromSigned` and `fromDescription`.
   *
   * @param {Fields} fields
   * @param {{public: Uint8Array, expires: number | null}} key
   */
  constructor(fields, key) {
    demand(fields.schema === SCHEMA, `the schema is not ${SCHEMA}.`);
    this.key = key;
    this.model = fields.model;
    this.number = fields.round;
    this.users = whole(fields.users, "users", 1, 2 ** 32);
    this.minimum = whole(fields.minimum, "minimum", 1, this.users);
    const { estimator, randomizer } = fields;
    demand(
      (estimator?.kind === "shuffle-mean" && this.model === "shuffle") ||
        (estimator?.kind === "local-mean" && this.model === "local"),
      `this client answers for means of bounded records, not for ${kindOf(estimator)}.`,
    );
    demand(
      this.number === 1 && Array.isArray(fields.learnt) && !fields.learnt.length,
      "this client answers first rounds alone.",
    );
    only(estimator, "the estimator", ["kind", "domain", "p", "weights", "privacy", "n", "columns"]);
    demand(
      alike(estimator.privacy, fields.privacy),
      "the description contradicts itself about its promise.",
    );
    this.columns = estimator.columns;
    /** @type {Promised} */
    this.promise = promiseOf(fields.privacy);
    /** @type {Survey | null} */
    this.survey = "survey" in fields ? surveyOf(fields.survey) : null;
    demand(
      !("honest" in fields) || this.model === "shuffle",
      "in the local model the promise counts on nobody.",
    );
    this.honest =
      "honest" in fields ? whole(fields.honest, "honest", 1, this.minimum) : this.minimum;
    this.randomizer =
      this.model === "shuffle"
        ? this.mixed(randomizer, estimator)
        : this.alone(randomizer, estimator);
    /** @type {Uint8Array} */ this.digest = new Uint8Array(0);
    /** @type {Uint8Array} */ this.task = new Uint8Array(0);
    /** @type {Uint8Array} */ this.label = new Uint8Array(0);
    /** @type {Uint8Array} */ this.sealedLabel = new Uint8Array(0);
  }

  /**
   * @param {Fields} said
   * @param {Fields} estimator
   */
  mixed(said, estimator) {
    demand(
      said?.kind === "shares",
      `this client has no randomizer ${kindOf(said)} in the shuffle model.`,
    );
    only(said, "the randomizer", ["kind", "encoding", "noise"]);
    const { encoding } = said;
    demand(
      encoding?.kind === "domain" && encoding.domain?.domain === "box" && "grid" in encoding,
      `this client has the encoding of boxes, not of ${kindOf(encoding?.domain?.domain)}.`,
    );
    only(encoding, "the encoding", ["kind", "domain", "p", "weights", "bits", "axes", "grid"]);
    demand(
      alike(encoding.domain, estimator.domain),
      "the randomizer is about another domain than the mean.",
    );
    const { promise, share, ...noise } = only(said.noise, "the noise", [
      "promise",
      "share",
      "honest",
      "law",
      "parameter",
      "modulus_bits",
      "shares",
    ]);
    demand(
      alike(promise, estimator.privacy) && share === "1",
      "the noise is that of another promise.",
    );
    demand(
      noise.law === "laplace" || noise.law === "gaussian",
      `this client has no noise ${kindOf(noise.law)}.`,
    );
    const found = new Fragments({
      grid: gridOf(encoding.grid, boundsOf(encoding.domain).length),
      bits: whole(encoding.bits, "bits", 1, FINEST),
      noise: {
        law: noise.law,
        parameter: Fraction.fromText(noise.parameter),
        honest: BigInt(whole(noise.honest, "honest", 1, this.honest)),
        modulusBits: whole(noise.modulus_bits, "modulus_bits", 1, 62),
        fragments: whole(noise.shares, "shares", 2, 256),
      },
    });
    demand(
      keepsMixed(found, this.promise.epsilon, this.promise.delta),
      "the description does not keep its promise: it has too little noise or too few fragments.",
    );
    return found;
  }

  /**
   * @param {Fields} said
   * @param {Fields} estimator
   */
  alone(said, estimator) {
    demand(
      ALONE.has(said?.kind),
      `this client has no randomizer ${kindOf(said)} in the local model.`,
    );
    demand(
      alike(said.domain, estimator.domain),
      "the randomizer is about another domain than the mean.",
    );
    const epsilon = Fraction.typed(said.epsilon);
    demand(
      epsilon.atMost(this.promise.epsilon),
      "the description does not keep its promise: its answers tell more.",
    );
    return /** @type {(said: Fields) => any} */ (ALONE.get(said.kind))(said);
  }

  /**
   * Refuse to answer what is over.
   *
   * @param {number} now in milliseconds since 1970
   */
  requireOpen(now) {
    demand(
      this.key.expires === null || now < this.key.expires,
      "the key has ended; ask for a new one.",
    );
    demand(
      !this.survey?.expires || now < this.survey.expires,
      "the survey has ended: it is not answered any more.",
    );
  }
}

/**
 * @param {Fields} fields
 * @param {string} signer
 */
async function verify({ description, key, signature }, signer) {
  let pinned;
  try {
    pinned = await crypto.subtle.importKey("raw", fromHex(signer), "Ed25519", false, ["verify"]);
  } catch {
    throw new Refused("a signer is the 64 hexadecimal digits of its public key.");
  }
  const said = joined(utf8(`${SIGNED_SCHEMA}\n`), written({ description, key }));
  const isBytes = signature instanceof Uint8Array;
  const holds = isBytes && (await crypto.subtle.verify("Ed25519", pinned, signature.slice(), said));
  demand(holds, "the description was not signed by the signer that is known, or was changed.");
}
