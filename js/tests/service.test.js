/** A device is patient with a service that is away, and short with one that refuses. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { Refused } from "../src/refused.js";
import { Service } from "../src/service.js";

/**
 * A service that answers as it is told (0: not at all), and what it was sent.
 *
 * @param {import("node:test").TestContext} context
 * @param {number[]} moods
 */
async function moody(context, moods) {
  /** @type {string[]} */
  const sent = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    sent.push(`${request.method} ${request.url} ${body}`);
    const status = moods.shift() ?? 0;
    if (!status) return void request.socket.destroy();
    const headers = { "retry-after": "0", location: "/elsewhere" };
    response.writeHead(status, headers).end("a reason\x1b[31m");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(null)));
  context.after(() => server.close());
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { address: `http://127.0.0.1:${port}/under/here/`, sent };
}

const report = new TextEncoder().encode("report");

test("the same bytes are sent until they are taken", async (context) => {
  const { address, sent } = await moody(context, [503, 0, 429, 201, 200]);
  const service = new Service(address);
  assert.equal(await service.send(report), true);
  assert.equal(await service.send(report), false);
  assert.deepEqual(sent, new Array(5).fill("POST /under/here/reports report"));
});

test("a refusal is final, and its reason steers no terminal", async (context) => {
  const { address, sent } = await moody(context, [410, 404]);
  const service = new Service(address);
  await assert.rejects(service.send(report), (error) => {
    assert.ok(error instanceof Refused);
    assert.equal(error.message, "the service refuses (410): a reason [31m");
    return true;
  });
  await assert.rejects(service.description(), /\(404\)/);
  assert.deepEqual(sent, ["POST /under/here/reports report", "GET /under/here/round "]);
});

test("a report goes nowhere but to its address", async (context) => {
  const { address, sent } = await moody(context, [307, 308, 302]);
  const service = new Service(address);
  await assert.rejects(service.send(report), /\(307\)/);
  await assert.rejects(service.send(report), /\(308\)/);
  await assert.rejects(service.description(), /\(302\)/);
  assert.ok(sent.every((each) => each.includes(" /under/here/")));
});

test("who does not answer is left alone after a while", async (context) => {
  const { address } = await moody(context, new Array(9).fill(503));
  await assert.rejects(new Service(address, { patience: 100 }).description(), /send it later/);
});

test("nothing is sent where somebody on the way could read it", () => {
  for (const address of ["http://collect.example", "http://127.0.0.1.example", "ftp://localhost"]) {
    assert.throws(() => new Service(address), Refused);
  }
  for (const address of ["https://collect.example", "http://localhost:8", "http://[::1]:8/"]) {
    assert.ok(new Service(address));
  }
});
