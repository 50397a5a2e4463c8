/**
 * What docs/wire-vectors.json says, as checks that run in Node and in a browser alike.
 *
 * `checks(vectors)` are pairs of a name and a function that throws if the client computes anything
 * else.
 */

import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { Account, MemoryStore } from "../src/account.js";
import { exactNumbers, rounded } from "../src/box_grid.js";
import { fromHex, joined, sha256, toHex } from "../src/bytes.js";
import { read, written } from "../src/cbor.js";
import { Client } from "../src/client.js";
import { Fraction, gain } from "../src/fractions.js";
import { Refused } from "../src/refused.js";
import { Round } from "../src/round.js";
import { seal } from "../src/sealing.js";

const HEADER_BYTES = 28;
const LABEL_BYTES = 12;
const OVERHEAD = 48;

/** @param {any} vectors @returns {[string, () => Promise<void>][]} */
export function checks(vectors) {
  const { signer, key, descriptions } = vectors;
  /** @param {string} hex */
  const opened = (hex) => Round.fromSigned(fromHex(hex), signer.public);
  /** @param {string} name */
  const round = (name) => opened(descriptions[name].signed);
  return [
    [
      "data are written in one way, and read again",
      async () => {
        for (const { json, cbor } of vectors.cbor.written) {
          equal(toHex(written(plain(json))), cbor);
          equal(toHex(written(read(fromHex(cbor)))), cbor);
        }
      },
    ],
    ...each(vectors.cbor.refused, "CBOR is refused", async (hex) => {
      await refused(async () => read(fromHex(hex)));
    }),
    ...each(descriptions, "a description is read as what it is", async (said) => {
      const found = await opened(said.signed);
      equal(toHex(found.digest), said.digest);
      equal(toHex(await sha256(fromHex(said.cbor))), said.digest);
      equal(toHex(found.task), said.task);
      equal(toHex(found.label), said.label);
      equal(toHex(found.sealedLabel), said.sealed_label);
      equal(toHex(found.key.public), key.public);
    }),
    ...each(descriptions, "another signer is not trusted with", async (said) => {
      await refused(() => Round.fromSigned(fromHex(said.signed), key.public), /not signed by/);
      await refused(() => Round.fromSigned(fromHex(said.signed), "00"), /64 hexadecimal/);
    }),
    ...each(vectors.forged, "what nobody has signed so is refused", async (hex) => {
      await refused(async () => (await opened(hex)).requireOpen(Date.now()));
    }),
    ...each(vectors.lies, "a description that lies is refused", async (hex) => {
      await refused(() => opened(hex));
    }),
    ...each(vectors.not_supported, "what this client cannot do is named", async (hex) => {
      await refused(() => opened(hex), /this client/);
    }),
    [
      "what has ended is not answered",
      async () => {
        const ended = await opened(vectors.ended.survey);
        await refused(async () => ended.requireOpen(Date.now()), /has ended/);
      },
    ],
    ...each(vectors.grids, "records on the grid", async ({ description, records, exact }) => {
      const { grid } = /** @type {any} */ ((await round(description)).randomizer);
      records.forEach((/** @type {string[]} */ record, /** @type {number} */ row) => {
        equal(exactNumbers(grid, record.map(float)).join(), exact[row].join());
      });
    }),
    ...each(vectors.fragments, "fragments of a record", async (said) => {
      const randomizer = /** @type {any} */ ((await round(said.description)).randomizer);
      const exact = exactNumbers(randomizer.grid, said.record.map(float));
      const found = exact.map((v, at) =>
        rounded(v, randomizer.bits, BigInt(said.rounding_words[at])),
      );
      equal(found.join(), said.rounded.join());
      const m = randomizer.noise.fragments - 1;
      const fragments = found.map((number, at) => {
        const others = said.splitting_words.slice(at * m, (at + 1) * m).map(BigInt);
        return randomizer.split(number + BigInt(said.noise[at]), others);
      });
      equal(toHex(randomizer.packed(fragments)), said.payload);
    }),
    ...each(vectors.subsets, "sets of points", async (said) => {
      const { randomizer } = await round(said.description);
      const words = given([said.coin_word, ...said.keys]);
      equal(toHex(randomizer.payload(said.record.map(float), words)), said.payload);
    }),
    ...each(vectors.signs, "one of two ends", async (said) => {
      const { randomizer } = await round(said.description);
      const words = given([said.anyone_word, said.place_word, said.favour_word]);
      equal(toHex(randomizer.payload(said.record.map(float), words)), said.payload);
    }),
    ...each(vectors.numbers, "one of a few numbers", async (said) => {
      const { randomizer } = await round(said.description);
      const words = given([said.place_word, said.number_word]);
      equal(toHex(randomizer.payload(said.record.map(float), words)), said.payload);
    }),
    [
      "e^ε from below",
      async () => {
        for (const said of vectors.gains) {
          const [found, expected] = [gain(said.epsilon), Fraction.fromText(said.gain)];
          equal(found.n * expected.d, expected.n * found.d);
        }
      },
    ],
    [
      "a message is label, nonce and payload",
      async () => {
        const { label, nonce, payload, message } = vectors.packed;
        equal(toHex(joined(fromHex(label), fromHex(nonce), fromHex(payload))), message);
        equal(toHex((await round("one column")).label), label);
      },
    ],
    [
      "a piece is sealed as RFC 9180 says, and opened",
      async () => {
        const { piece, info, sealed, ephemeral_secret, ephemeral_public } = vectors.sealed;
        const ephemeral = await pair(ephemeral_secret, ephemeral_public);
        equal(
          toHex(await seal(fromHex(key.public), fromHex(piece), fromHex(info), ephemeral)),
          sealed,
        );
        equal(toHex(await unsealed(key, fromHex(sealed), fromHex(info))), piece);
      },
    ],
    [
      "a report has every piece of its message, sealed for its group",
      async () => {
        const { message, report, description } = vectors.report;
        const found = await round(description);
        const [whole, sent] = [fromHex(message), fromHex(report)];
        const nonce = whole.subarray(LABEL_BYTES, HEADER_BYTES);
        const pieces = found.randomizer.pieces(nonce, whole.subarray(HEADER_BYTES));
        equal(toHex(sent.subarray(0, LABEL_BYTES)), toHex(found.sealedLabel));
        const all = await openedPieces(found, key, sent);
        equal(all.map(toHex).join(), pieces.map(toHex).join());
      },
    ],
    ...each(
      descriptions,
      "a device's own report is as long as it must be, and opens",
      async (said) => {
        const account = new Account(new MemoryStore(), { epsilon: 4, delta: 1e-5 });
        const client = await Client.open(fromHex(said.signed), { signer: signer.public, account });
        const record = new Array(client.round.randomizer.dim).fill(1);
        const sent = await client.answer(record);
        equal(sent.length, said.sealed_bytes);
        equal(
          (await openedPieces(client.round, key, sent)).length,
          client.round.randomizer.groups.length,
        );
        equal(toHex(await client.answer(record.map(() => null))), toHex(sent));
        await refused(() => client.answer([...record, 1]), /a record must be/);
        await refused(() => client.answer(/** @type {any} */ ("1")), /a record must be/);
      },
    ),
  ];
}

/**
 * @param {any} entries
 * @param {string} what
 * @param {(entry: any) => Promise<void>} check
 * @returns {[string, () => Promise<void>][]}
 */
function each(entries, what, check) {
  return Object.entries(entries).map(([name, entry]) => [`${what}: ${name}`, () => check(entry)]);
}

/** @param {unknown} found @param {unknown} expected */
export function equal(found, expected) {
  if (found !== expected)
    throw new Error(`found ${String(found).slice(0, 200)}, not ${String(expected).slice(0, 200)}`);
}

/** @param {() => Promise<unknown>} attempt @param {RegExp} [pattern] */
export async function refused(attempt, pattern = /./) {
  let found;
  try {
    found = await attempt();
  } catch (error) {
    if (error instanceof Refused && pattern.test(error.message)) return;
    throw error;
  }
  throw new Error(`taken: ${String(found)}`);
}

/** @param {any} value what stands for data in JSON */
function plain(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  if ("bytes" in value) return fromHex(value.bytes);
  if ("integer" in value) return BigInt(value.integer);
  return "float" in value ? float(value.float) : value;
}

/** @param {string} hex */
function float(hex) {
  return new DataView(fromHex(hex).buffer).getFloat64(0);
}

/** A source of words that hands out these, and no more. @param {string[]} drawn */
function given(drawn) {
  const left = drawn.map(BigInt);
  return () => {
    const word = left.shift();
    if (word === undefined) throw new Error("more words are drawn than there should be");
    return word;
  };
}

const suite = new CipherSuite({
  kem: new DhkemX25519HkdfSha256(),
  kdf: new HkdfSha256(),
  aead: new Aes128Gcm(),
});

/** @param {string} secret @param {string} open */
async function pair(secret, open) {
  const privateKey = await suite.kem.importKey("raw", fromHex(secret).buffer, false);
  const publicKey = await suite.kem.importKey("raw", fromHex(open).buffer, true);
  return { privateKey, publicKey };
}

/** @param {any} key @param {Uint8Array} sealed @param {Uint8Array} info */
async function unsealed(key, sealed, info) {
  const recipientKey = await pair(key.secret, key.public);
  const context = await suite.createRecipientContext({
    recipientKey,
    enc: sealed.slice(0, 32).buffer,
    info,
  });
  return new Uint8Array(await context.open(sealed.slice(32)));
}

/** @param {Round} round @param {any} key @param {Uint8Array} report */
async function openedPieces(round, key, report) {
  const { groups } = round.randomizer;
  const size = (report.length - HEADER_BYTES) / groups.length;
  equal(size > OVERHEAD, true);
  const found = [];
  for (const [place, group] of groups.entries()) {
    const start = HEADER_BYTES + place * size;
    const info = joined(round.sealedLabel, Uint8Array.of(group >> 8, group & 255));
    found.push(await unsealed(key, report.slice(start, start + size), info));
  }
  return found;
}
