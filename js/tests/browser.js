/**
 * The vectors of docs/wire.md, and an account in IndexedDB, in a real browser: Debian's Chromium,
 * on a page that is served from this machine.
 *
 *     npm run test-browser        (CHROMIUM=/usr/bin/chromium)
 */

import { createServer } from "node:http";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TYPES = /** @type {Record<string, string>} */ ({
  ".html": "text/html",
  ".js": "text/javascript",
  ".json": "application/json",
});
const FLAGS = [
  ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];

const server = createServer(async ({ url }, response) => {
  const path = normalize(decodeURIComponent(new URL(url ?? "/", "http://localhost").pathname));
  try {
    if (!/^\/(js|docs)\//.test(path)) throw new Error("elsewhere");
    const content = await readFile(join(ROOT, path));
    response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" });
    response.end(content);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(null)));
const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
const profile = await mkdtemp(join(tmpdir(), "muhat-chromium-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: FLAGS,
});
try {
  const page = await browser.newPage();
  page.on("pageerror", (error) => console.error(error));
  await page.goto(`http://localhost:${port}/js/tests/browser.html`);
  await page.waitForFunction("globalThis.results !== undefined", undefined, { timeout: 60_000 });
  const { passed, failed } = /** @type {{passed: number, failed: string[]}} */ (
    await page.evaluate("results")
  );
  for (const each of failed) console.error(`not ok ${each}`);
  console.log(
    `${browser.browser()?.version() ?? "Chromium"}: ${passed} passed, ${failed.length} failed`,
  );
  process.exitCode = failed.length || !passed ? 1 : 0;
} finally {
  await browser.close();
  server.close();
  await rm(profile, { recursive: true, force: true });
}
