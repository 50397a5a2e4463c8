/** What runs on a person's device: a signed question and a record in, a sealed report out, once. */

import { joined, randomBytes } from "./bytes.js";
import { systemWords } from "./random.js";
import { demand } from "./refused.js";
import { Round } from "./round.js";
import { report } from "./sealing.js";

const NONCE_BYTES = 16;

export class Client {
  /**
   * The device's side of a round, if `signer` has signed it and it keeps what it promises.
   *
   * @param {Uint8Array} signed what `muhat protocol sign` wrote
   * @param {object} known
   * @param {string} known.signer whom this device trusts: 64 hexadecimal digits, pinned beforehand
   * @param {import("./account.js").Account} known.account the device's own
   */
  static async open(signed, { signer, account }) {
    return new Client(await Round.fromSigned(signed, signer), account);
  }

  /**
   * For `open`.
   *
   * @param {Round} round
   * @param {import("./account.js").Account} account
   */
  constructor(round, account) {
    demand(
      account && typeof account.answer === "function",
      "a device keeps an account: see Account.",
    );
    this.round = round;
    this.account = account;
  }

  /** What is asked and promised, for a person to read before they answer. */
  get terms() {
    const { model, columns, users, minimum, honest, survey, promise } = this.round;
    const number = (/** @type {{n: bigint, d: bigint}} */ { n, d }) => Number(n) / Number(d);
    const promised = { epsilon: number(promise.epsilon), delta: number(promise.delta) };
    return {
      model,
      columns,
      users,
      minimum,
      honest: model === "local" ? 0 : honest,
      survey,
      promised,
    };
  }

  /**
   * The report of one record: a number, or one number a coordinate. A missing number (null,
   * not-a-number, an infinity) counts as the centre's, and one outside as the nearest inside.
   *
   * Asked again, for this record or another, it is the same report.
   *
   * @param {number | null | (number | null)[]} record
   * @returns {Promise<Uint8Array>}
   */
  async answer(record) {
    const numbers = recordOf(record, this.round.randomizer.dim);
    return this.account.answer(this.round, () => sealedReport(this.round, numbers));
  }
}

/**
 * @param {Round} round
 * @param {(number | null)[]} record
 */
async function sealedReport(round, record) {
  const { nonce, payload } = randomized(round, record);
  const pieces = round.randomizer.pieces(nonce, payload);
  return report(round.sealedLabel, round.key.public, pieces, round.randomizer.groups);
}

/**
 * The message of one record as it is before it is sealed. In the shuffle model it is as good as the
 * record: it must not leave the device.
 *
 * @param {Round} round
 * @param {(number | null)[]} record
 * @param {import("./random.js").Words} [words]
 */
export function unsealedMessage(round, record, words = systemWords) {
  const { nonce, payload } = randomized(round, record, words);
  return joined(round.label, nonce, payload);
}

/**
 * @param {Round} round
 * @param {(number | null)[]} record
 * @param {import("./random.js").Words} [words]
 */
function randomized(round, record, words = systemWords) {
  return { nonce: randomBytes(NONCE_BYTES), payload: round.randomizer.payload(record, words) };
}

/**
 * @param {unknown} record
 * @param {number} dim
 * @returns {(number | null)[]}
 */
function recordOf(record, dim) {
  const numbers = Array.isArray(record) ? record : [record];
  const fits =
    numbers.length === dim && numbers.every((each) => each === null || typeof each === "number");
  demand(fits, `a record must be of so many numbers, of which null is a missing one: ${dim}.`);
  return numbers;
}
