/** An account's state in the browser, in a database of the page's own origin. */

/** @typedef {import("./account.js").State} State */
/** @typedef {import("./account.js").Store} Store */

const TABLE = "account";
const ONLY = "state";

/** @implements {Store} */
export class IndexedDBStore {
  /** @param {string} [name] of the database */
  constructor(name = "muhat-client") {
    this.name = name;
  }

  /**
   * @template T
   * @param {import("./account.js").Change<T>} change
   * @returns {Promise<T>}
   */
  async transact(change) {
    const database = await this.open();
    try {
      return await new Promise((resolve, reject) => {
        // Transactions that write wait for one another, those of other pages too.
        const transaction = database.transaction(TABLE, "readwrite", { durability: "strict" });
        const table = transaction.objectStore(TABLE);
        /** @type {T} */ let found;
        /** @type {unknown} */ let refusal;
        const reading = table.get(ONLY);
        reading.onsuccess = () => {
          try {
            const changed = change(reading.result ?? null);
            found = changed.found;
            if (changed.state !== null) table.put(changed.state, ONLY);
          } catch (error) {
            refusal = error;
            transaction.abort();
          }
        };
        transaction.oncomplete = () => resolve(found);
        transaction.onabort = () => reject(refusal ?? transaction.error);
      });
    } finally {
      database.close();
    }
  }

  /** @returns {Promise<IDBDatabase>} */
  open() {
    return new Promise((resolve, reject) => {
      const opening = indexedDB.open(this.name, 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore(TABLE);
      opening.onsuccess = () => resolve(opening.result);
      opening.onerror = () => reject(opening.error);
    });
  }
}
