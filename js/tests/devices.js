/**
 * Devices that answer a service of muhat's, one after the other: JSON on standard input,
 *
 *     {"address", "signer": hex, "records": [[…], …]}
 *
 * and on standard output how many reports were new. Every report is sent twice.
 */

import { Account, Client, MemoryStore, Service } from "../src/index.js";

/** @type {Buffer[]} */
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const { address, signer, records } = JSON.parse(Buffer.concat(chunks).toString());
const service = new Service(address);
let taken = 0;
for (const record of records) {
  const account = new Account(new MemoryStore(), { epsilon: 64, delta: 0.01 });
  const client = await Client.open(await service.description(), { signer, account });
  for (let time = 0; time < 2; time++) {
    taken += Number(await service.send(await client.answer(record)));
  }
}
process.stdout.write(JSON.stringify(taken));
