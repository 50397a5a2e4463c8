/**
 * Which of many signed descriptions are taken: JSON {"signer", "signed": […]} in, and out a list of
 * why not, or null.
 */

import { fromHex } from "../src/bytes.js";
import { Refused } from "../src/refused.js";
import { Round } from "../src/round.js";

/** @type {Buffer[]} */
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const { signer, signed } = JSON.parse(Buffer.concat(chunks).toString());
const found = [];
for (const each of signed) {
  try {
    await Round.fromSigned(fromHex(each), signer);
    found.push(null);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    found.push(error.message);
  }
}
process.stdout.write(JSON.stringify(found));
