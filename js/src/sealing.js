/** Sealed reports: every piece of a message for the server alone, by HPKE (RFC 9180). */

import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { joined, randomBytes, sha256, utf8 } from "./bytes.js";

const MAGIC = utf8("MS");
const VERSION = 1;
const NUMBER_BYTES = 16;

const suite = new CipherSuite({
  kem: new DhkemX25519HkdfSha256(),
  kdf: new HkdfSha256(),
  aead: new Aes128Gcm(),
});

/**
 * What every report of a round under a key begins with.
 *
 * @param {number} round
 * @param {Uint8Array} digest of the description
 * @param {Uint8Array} key
 */
export async function sealedLabel(round, digest, key) {
  const both = await sha256(joined(utf8("muhat sealed"), digest, key));
  return joined(MAGIC, Uint8Array.of(VERSION, round), both.subarray(0, 8));
}

/**
 * The piece for the owner of the key alone, and for no other use than `info` says.
 *
 * @param {Uint8Array} key 32 bytes of X25519
 * @param {Uint8Array} piece
 * @param {Uint8Array} info
 * @param {CryptoKeyPair} [ephemeral] for tests; a new one is drawn
 */
export async function seal(key, piece, info, ephemeral) {
  const recipientPublicKey = await suite.kem.deserializePublicKey(key);
  const sender = await suite.createSenderContext({ recipientPublicKey, info, ekm: ephemeral });
  return joined(new Uint8Array(sender.enc), new Uint8Array(await sender.seal(piece)));
}

/**
 * The report of a message's pieces, each sealed for its group.
 *
 * @param {Uint8Array} label
 * @param {Uint8Array} key
 * @param {Uint8Array[]} pieces
 * @param {number[]} groups
 */
export async function report(label, key, pieces, groups) {
  const sealed = [];
  for (const [place, piece] of pieces.entries()) {
    const info = joined(label, Uint8Array.of(groups[place] >> 8, groups[place] & 255));
    sealed.push(await seal(key, piece, info));
  }
  return joined(label, randomBytes(NUMBER_BYTES), ...sealed);
}
