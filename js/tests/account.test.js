/** A device's account: once, within a budget, in the order of versions, and on the disk. */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Account, MemoryStore } from "../src/account.js";
import { sha256, utf8 } from "../src/bytes.js";
import { FileStore } from "../src/file_store.js";
import { Fraction } from "../src/fractions.js";
import { Refused } from "../src/refused.js";

const DAY = 86_400_000;

/** @param {string} name @param {object} [more] @returns {Promise<any>} */
async function asked(name, more = {}) {
  const promise = { epsilon: Fraction.typed(1), delta: Fraction.typed(1e-6) };
  const open = { requireOpen: () => {} };
  const [digest, task] = [await sha256(utf8(`${name} round`)), await sha256(utf8(name))];
  return { digest, task, promise, survey: null, ...open, ...more };
}

/** @param {string} text */
const make = (text) => async () => utf8(text);
/** @param {Uint8Array} bytes */
const text = (bytes) => new TextDecoder().decode(bytes);

test("a round is answered once, with the same bytes ever after", async () => {
  const account = new Account(new MemoryStore(), { epsilon: 1, delta: 1e-6 });
  const round = await asked("a");
  assert.equal(text(await account.answer(round, make("first"))), "first");
  assert.equal(text(await account.answer(round, () => assert.fail("made again"))), "first");
  const other = { ...round, digest: await sha256(utf8("another round of it")) };
  await assert.rejects(account.answer(other, make("second")), /another round/);
});

test("of two that ask at once one message counts", async () => {
  const account = new Account(new MemoryStore(), { epsilon: 1, delta: 1e-6 });
  const round = await asked("a");
  const sent = await Promise.all(["x", "y", "z"].map((each) => account.answer(round, make(each))));
  assert.equal(new Set(sent.map(text)).size, 1);
});

test("the budget of a period is never exceeded, and is whole again after it", async () => {
  let now = 1e12;
  const account = new Account(new MemoryStore(), { epsilon: 2.5, delta: 1e-5, days: 7 }, () => now);
  await account.answer(await asked("a"), make("a"));
  now += DAY;
  await account.answer(await asked("b"), make("b"));
  assert.deepEqual(await account.remaining(), { epsilon: 0.5, delta: 8e-6 });
  await assert.rejects(account.answer(await asked("c"), make("c")), /does not allow this epsilon/);
  now -= 5 * DAY; // a clock that is set back changes nothing
  await assert.rejects(account.answer(await asked("c"), make("c")), /does not allow/);
  now += 11 * DAY + 1;
  assert.equal(text(await account.answer(await asked("c"), make("c"))), "c");
});

test("tenths add up exactly, and delta counts too", async () => {
  const promise = { epsilon: Fraction.typed(0.1), delta: Fraction.typed(0) };
  const account = new Account(new MemoryStore(), { epsilon: 0.3 });
  for (const name of ["a", "b", "c"])
    await account.answer(await asked(name, { promise }), make(name));
  await assert.rejects(account.answer(await asked("d", { promise }), make("d")), Refused);
  const pure = new Account(new MemoryStore(), { epsilon: 10 });
  await assert.rejects(pure.answer(await asked("a"), make("a")), /does not allow this delta/);
});

test("an older version of a survey is refused, and answers to ended ones are erased", async () => {
  const store = new MemoryStore();
  let now = 1e12;
  const account = new Account(store, { epsilon: 10, delta: 1e-4 }, () => now);
  const survey = { name: "commuting", version: 2, expires: now + DAY };
  await account.answer(await asked("v2", { survey }), make("secret"));
  const older = await asked("v1", { survey: { ...survey, version: 1 } });
  await assert.rejects(account.answer(older, make("v1")), /version 2/);
  now += DAY;
  await account.answer(await asked("other"), make("other"));
  assert.equal(JSON.parse(store.kept ?? "").answers[0].message, "");
});

test("a file is for its owner alone, is whole, and goes on after a restart", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "muhat-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "device.json");
  const open = () => new Account(new FileStore(path), { epsilon: 2, delta: 1e-5 });
  const round = await asked("a");
  const sent = await Promise.all(["x", "y", "z"].map((each) => open().answer(round, make(each))));
  assert.equal(new Set(sent.map(text)).size, 1);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(text(await open().answer(round, make("w"))), text(sent[0]));
  assert.equal(JSON.parse(readFileSync(path, "utf8")).answers.length, 1);
  const smaller = new Account(new FileStore(path), { epsilon: 1 });
  await smaller.answer(await asked("b"), make("b")); // the account's own budget holds
  writeFileSync(path, "{");
  await assert.rejects(open().answer(round, make("w")), /damaged/);
  writeFileSync(path, "{}");
  await assert.rejects(open().answer(round, make("w")), /something else/);
});

test("what refuses leaves nothing behind", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "muhat-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const account = new Account(new FileStore(join(folder, "device.json")), { epsilon: 0.5 });
  await assert.rejects(account.answer(await asked("a"), make("a")), Refused);
  assert.throws(() => statSync(join(folder, "device.json")));
  assert.throws(() => statSync(join(folder, "device.json.lock")));
});

test("budgets that are none are refused", () => {
  for (const budget of [
    { epsilon: 0 },
    { epsilon: NaN },
    { epsilon: 1, delta: 1 },
    { epsilon: 1, days: 0.5 },
  ]) {
    assert.throws(() => new Account(new MemoryStore(), budget), Refused);
  }
});
