// @ts-check
/**
 * Runs several test files in one process, one after the other: loading what they test takes more processor time than most of
 * them do. Each file is a suite, so its hooks are its own, and a failure is listed below its name. Arguments: the files.
 */
import assert from "node:assert/strict";
import { after, describe } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

import { noteFile } from "./test-reporter.mjs";

/**
 * Files whose tests wait for timers of the program most of the time, and share nothing: their tests run beside each other. Paths end so.
 */
const CONCURRENT = [
  "kubernetes/resource-mirror.test.js",
  "container/files/resolv-conf-writer.test.js",
  "container/watch/host-file.test.js",
  "run/lifecycle.test.js",
];
const AT_ONCE = 8;
const GLOBALS = ["setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "Date"];

for (const file of process.argv.slice(2)) {
  const earlier = replaceable();
  const note = noteFile(file);
  const concurrency = CONCURRENT.some((end) => file.endsWith(end)) ? AT_ONCE : 1;
  await describe(file, { concurrency }, async () => {
    await import(pathToFileURL(file).href);
    after(ended);
    after(note);
    // The last hook of the file: what it replaces would be in the next one, too.
    after(() => assert.deepEqual(replaceable(), earlier, "a file must restore what it changes"));
  });
}

/** As in a process of its own: a timer that a test leaves would otherwise set others in the tests of the next file. */
async function ended() {
  while (process.getActiveResourcesInfo().includes("Timeout")) await sleep(10);
}

function replaceable() {
  const globals = GLOBALS.map((name) => [name, Reflect.get(globalThis, name)]);
  return { ...Object.fromEntries(globals), folder: process.cwd(), mask: process.umask(), env: { ...process.env } };
}
