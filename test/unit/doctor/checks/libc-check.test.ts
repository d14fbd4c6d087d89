// Tests that the doctor finds the C library and its version in a container's files, and reports the limits of old musl only
// for old musl.

import assert from "node:assert/strict";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";

import { libcFinding } from "../../../../src/doctor/checks/container-check.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-libc-"));
let made = 0;
after(() => rmSync(folder, { recursive: true }));

function check(files: Readonly<Record<string, string>>, resolvConf = "nameserver 127.0.0.11\n"): string {
  const rootFolder = join(folder, String(made++));
  mkdirSync(rootFolder);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(rootFolder, path)), { recursive: true });
    writeFileSync(join(rootFolder, path), text);
  }
  const root = openSync(rootFolder, "r");
  try {
    const { state, detail } = libcFinding(root, resolvConf);
    return `${state}: ${detail}`;
  } finally {
    closeSync(root);
  }
}

const LOADER = "/lib/ld-musl-x86_64.so.1";

test("musl before 1.2.4 has no TCP; its version comes from the package list or the library itself", () => {
  assert.match(
    check({ [LOADER]: "musl libc\x001.2.3\x00more\x00" }),
    /^warning: musl 1\.2\.3: no TCP support before 1\.2\.4/,
  );
  const installed = "P:busybox\nV:1.36.1-r0\n\nP:musl\nA:x86_64\nV:1.1.24-r10\n\n";
  assert.match(check({ [LOADER]: "", "/lib/apk/db/installed": installed }), /^warning: musl 1\.1\.24: no TCP support/);
  assert.match(check({ [LOADER]: "\x001.2.5\x00" }), /^ok: musl 1\.2\.5: queries all nameservers at once/);
  assert.match(check({ [LOADER]: "" }), /^ok: musl \(unknown version\)/);
});

test("musl queries other servers at the same time as Docker's", () => {
  const conf = "nameserver 127.0.0.11\nnameserver 10.0.0.1\n";
  assert.match(
    check({ [LOADER]: "\x001.2.5\x00" }, conf),
    /^warning: musl 1\.2\.5: queries 10\.0\.0\.1 at the same time/,
  );
});

test("glibc is reported with its version, and its absence if there is no C library", () => {
  const library = "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n";
  assert.match(check({ "/lib/aarch64-linux-gnu/libc.so.6": library }), /^ok: glibc 2\.36: .* one after the other/);
  assert.match(check({ "/lib/libc.so.6": library, [LOADER]: "\x001.2.3\x00" }), /^ok: glibc 2\.36: /);
  assert.match(check({ "/lib/libc.so.6": "gcompat", [LOADER]: "\x001.2.3\x00" }), /^warning: musl 1\.2\.3: /);
  assert.match(check({}), /^ok: no glibc or musl found/);
  // A special file there must not block the check.
  mkdirSync(join(folder, "odd", "lib", "libc.so.6"), { recursive: true });
  const root = openSync(join(folder, "odd"), "r");
  assert.match(libcFinding(root, undefined).detail, /^no glibc or musl found/);
  closeSync(root);
});

test("a package list with endless entries for musl is scanned once", () => {
  // A scan to the end from each entry would take hours.
  const endless = "P:musl\n".repeat((8 * 1024 * 1024) / 7);
  assert.match(check({ [LOADER]: "", "/lib/apk/db/installed": endless }), /musl \(unknown version\)/);
  const behind = `P:musl-utils\nV:9.9.9-r0\n\nP:musl\nA:x\n\nP:other\nV:1.1.1-r0\n`;
  assert.match(check({ [LOADER]: "", "/lib/apk/db/installed": behind }), /musl \(unknown version\)/);
});
