/**
 * Many devices in one process, for tests of muhat's servers: JSON on standard input,
 *
 *     {"signed": hex, "signer": hex, "records": [[…], …], "sealed": false, "key": "words"}
 *
 * and messages on standard output, each behind its length in four bytes. Not sealed, randomness is
 * keyed, so that a run repeats; sealed, it is the system's.
 */

import { Account, MemoryStore } from "../src/account.js";
import { fromHex, joined } from "../src/bytes.js";
import { Client, unsealedMessage } from "../src/client.js";
import { Round } from "../src/round.js";
import { keyedWords } from "./keyed_words.js";

/** @type {Buffer[]} */
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const { signed, signer, records, sealed, key } = JSON.parse(Buffer.concat(chunks).toString());
const round = await Round.fromSigned(fromHex(signed), signer);
const words = keyedWords(key);
const parts = [];
for (const record of records) {
  const account = new Account(new MemoryStore(), { epsilon: 64, delta: 0.01 });
  const message = sealed
    ? await new Client(round, account).answer(record)
    : unsealedMessage(round, record, words);
  parts.push(
    Uint8Array.from([0, 8, 16, 24], (shift) => (message.length >> shift) & 255),
    message,
  );
}
process.stdout.write(joined(...parts));
