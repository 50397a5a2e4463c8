/**
 * A shuffler or a server over HTTP: where a description comes from, and a report goes to.
 *
 * Whatever is sent may be sent again: a service knows the same bytes when it sees them. So what
 * nobody has answered, or what a busy service put off, is repeated until its time is over.
 */

import { demand, Refused } from "./refused.js";

const BUSY = [408, 429, 500, 502, 503, 504];
const [TAKEN, KNOWN] = [201, 200];
const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 5000;
const LONGEST_REASON = 200;
const LOOPBACK = /^(localhost|127(\.[0-9]+){3}|\[::1\])$/;

export class Service {
  /**
   * @param {string} address https://…; plain http to this machine alone
   * @param {object} [settings]
   * @param {number} [settings.patience] in milliseconds
   */
  constructor(address, { patience = 60_000 } = {}) {
    const { protocol, hostname } = new URL(address);
    demand(
      protocol === "https:" || (protocol === "http:" && LOOPBACK.test(hostname)),
      "what is sent must not be read on its way: use https://…",
    );
    this.address = address.replace(/\/+$/, "");
    this.patience = patience;
  }

  /** The signed description of the round that is collected now, which nobody has checked yet. */
  async description() {
    const response = await this.request("/round", {});
    await expect(response, [200]);
    return new Uint8Array(await response.arrayBuffer());
  }

  /**
   * Send a report until it is on the service's disk.
   *
   * @param {Uint8Array} report
   * @returns {Promise<boolean>} whether it was new
   */
  async send(report) {
    const headers = { "content-type": "application/octet-stream" };
    const body = /** @type {BodyInit} */ (report);
    const response = await this.request("/reports", { method: "POST", headers, body });
    await expect(response, [TAKEN, KNOWN]);
    return response.status === TAKEN;
  }

  /**
   * @param {string} path
   * @param {RequestInit} request
   * @returns {Promise<Response>}
   */
  async request(path, request) {
    const until = Date.now() + this.patience;
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      const response = await attempted(this.address + path, request, until);
      if (response !== null && !BUSY.includes(response.status)) return response;
      const asked = 1000 * Number(response?.headers.get("retry-after") ?? 0);
      await response?.body?.cancel();
      // Those who were refused together do not come back together.
      const [spread] = crypto.getRandomValues(new Uint8Array(1));
      const wait = pause * (1 + spread / 255) + (Number.isFinite(asked) ? asked : 0);
      demand(
        Date.now() + wait <= until,
        "the service does not answer, or is busy; what was made is in the account: send it later.",
      );
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

/**
 * What is answered now; null if nothing is.
 *
 * @param {string} address
 * @param {RequestInit} request
 * @param {number} until
 */
async function attempted(address, request, until) {
  const signal = AbortSignal.timeout(Math.max(1, until - Date.now()));
  // A redirection might lead to where somebody on the way can read: it is an answer like any other.
  /** @type {RequestInit} */
  const common = { signal, redirect: "manual", credentials: "omit", cache: "no-store" };
  try {
    return await fetch(address, { ...request, ...common });
  } catch {
    return null;
  }
}

/**
 * @param {Response} response
 * @param {number[]} statuses
 */
async function expect(response, statuses) {
  if (statuses.includes(response.status)) return;
  const said = (await response.text())
    .replace(/[^\x20-\x7e]/g, " ")
    .slice(0, LONGEST_REASON)
    .trim();
  throw new Refused(`the service refuses (${response.status}): ${said}`);
}
