/** An account's state in a file for its owner alone; for Node. */

import { open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Refused } from "./refused.js";

/** @typedef {import("./account.js").State} State */
/** @typedef {import("./account.js").Store} Store */

const ATTEMPTS = 200;
const PAUSE = 25;
const OWNERS = 0o600;

/** @implements {Store} */
export class FileStore {
  /** @param {string} path */
  constructor(path) {
    this.path = path;
  }

  /**
   * @template T
   * @param {import("./account.js").Change<T>} change
   * @returns {Promise<T>}
   */
  async transact(change) {
    const lock = await this.locked();
    try {
      const { state, found } = change(await this.read());
      if (state !== null) await this.write(JSON.stringify(state));
      return found;
    } finally {
      await lock.close();
      await rm(`${this.path}.lock`);
    }
  }

  /** A file that only one process can make; it is left behind by one that is killed. */
  async locked() {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      try {
        return await open(`${this.path}.lock`, "wx", OWNERS);
      } catch (error) {
        if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EEXIST") throw error;
        await pause(PAUSE);
      }
    }
    throw new Refused(
      `${this.path}.lock is there: a process uses the account, or was killed; if none, remove it.`,
    );
  }

  /** @returns {Promise<State | null>} */
  async read() {
    let text;
    try {
      text = await readFile(this.path, "utf8");
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT") return null;
      throw error;
    }
    try {
      return JSON.parse(text);
    } catch {
      throw new Refused(`${this.path} is damaged.`);
    }
  }

  /**
   * Whole and on the disk, or not at all.
   *
   * @param {string} text
   */
  async write(text) {
    const beside = `${this.path}.new`;
    await rm(beside, { force: true });
    const file = await open(beside, "wx", OWNERS);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(beside, this.path);
    const folder = await open(dirname(this.path));
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }
}
