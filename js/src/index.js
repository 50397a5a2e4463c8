/** A device's side of muhat's protocols, in browsers and Node: docs/wire.md. */

export { Account, MemoryStore } from "./account.js";
export { Client } from "./client.js";
export { IndexedDBStore } from "./indexed_db_store.js";
export { Refused } from "./refused.js";
export { Round } from "./round.js";
