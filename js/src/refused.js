/** What a device does not do: a description that it does not take, an answer it must not give. */
export class Refused extends Error {
  /** @param {string} message a sentence; it never quotes a record. */
  constructor(message) {
    super(message);
    this.name = "Refused";
  }
}

/**
 * @param {unknown} holds what must be so
 * @param {string} message what is said if it is not
 * @returns {asserts holds}
 */
export function demand(holds, message) {
  if (!holds) throw new Refused(message);
}
