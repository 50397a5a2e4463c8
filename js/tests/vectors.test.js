/** The vectors of docs/wire.md in Node. */

import { readFileSync } from "node:fs";
import { test } from "node:test";
import { checks } from "./checks.js";

const file = new URL("../../docs/wire-vectors.json", import.meta.url);
for (const [name, check] of checks(JSON.parse(readFileSync(file, "utf8")))) test(name, check);
