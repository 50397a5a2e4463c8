/** What the page of `browser.js` does: all checks, and what only a browser has. */

import { Account, Client, IndexedDBStore, MemoryStore } from "../src/index.js";
import { fromHex, toHex } from "../src/bytes.js";
import { checks, equal, refused } from "./checks.js";

/** @param {any} vectors @returns {[string, () => Promise<void>][]} */
function ownChecks({ descriptions, signer }) {
  const signed = fromHex(descriptions["one column"].signed);
  const budget = { epsilon: 1.5, delta: 1e-5 };
  const opened = async (/** @type {Uint8Array} */ bytes) =>
    Client.open(bytes, {
      signer: signer.public,
      account: new Account(new IndexedDBStore("test"), budget),
    });
  return [
    [
      "an account in IndexedDB answers once, whichever client asks, and two at a time",
      async () => {
        const clients = await Promise.all([opened(signed), opened(signed)]);
        const sent = await Promise.all(clients.map((client, age) => client.answer(30 + age)));
        equal(toHex(sent[0]), toHex(sent[1]));
        equal(toHex(await (await opened(signed)).answer(70)), toHex(sent[0]));
      },
    ],
    [
      "an account in IndexedDB refuses what its budget does not allow, and stays as it was",
      async () => {
        const account = new Account(new IndexedDBStore("test"), budget);
        equal((await account.remaining()).epsilon, 0.5);
        const other = await opened(fromHex(descriptions["bounds that are no floats"].signed));
        await refused(() => other.answer([0.5, 0]), /budget/);
        equal((await account.remaining()).epsilon, 0.5);
        equal((await new Account(new MemoryStore(), budget).remaining()).epsilon, 1.5);
      },
    ],
  ];
}

const vectors = await (await fetch("/docs/wire-vectors.json")).json();
const failed = [];
let passed = 0;
for (const [name, check] of [...checks(vectors), ...ownChecks(vectors)]) {
  try {
    await check();
    passed++;
  } catch (error) {
    failed.push(`${name}: ${error}`);
  }
}
Object.assign(globalThis, { results: { passed, failed } });
