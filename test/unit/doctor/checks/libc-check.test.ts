// Proves that the C library of a container is told by its files: musl with its version, glibc with its own, and that what
// old musl cannot do is told of old musl alone.

import assert from "node:assert/strict";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";

import { libcFinding } from "../../../../src/doctor/checks/libc-check.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-libc-"));
let made = 0;
after(() => rmSync(folder, { recursive: true }));

function told(files: Readonly<Record<string, string>>, resolvConf = "nameserver 127.0.0.11\n"): string {
  const place = join(folder, String(made++));
  mkdirSync(place);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(place, path)), { recursive: true });
    writeFileSync(join(place, path), text);
  }
  const root = openSync(place, "r");
  try {
    const { state, detail } = libcFinding(root, resolvConf);
    return `${state}: ${detail}`;
  } finally {
    closeSync(root);
  }
}

const LOADER = "/lib/ld-musl-x86_64.so.1";

test("musl before 1.2.4 has no TCP, whether packages or the library itself tell its version", () => {
  assert.match(
    told({ [LOADER]: "musl libc\x001.2.3\x00more\x00" }),
    /^warning: musl 1\.2\.3: it has no TCP before 1\.2\.4/,
  );
  const installed = "P:busybox\nV:1.36.1-r0\n\nP:musl\nA:x86_64\nV:1.1.24-r10\n\n";
  assert.match(told({ [LOADER]: "", "/lib/apk/db/installed": installed }), /^warning: musl 1\.1\.24: it has no TCP/);
  assert.match(told({ [LOADER]: "\x001.2.5\x00" }), /^ok: musl 1\.2\.5: it asks all servers at once/);
  assert.match(told({ [LOADER]: "" }), /^ok: musl of an unknown version/);
});

test("other servers beside Docker's are asked by musl at the same time", () => {
  const conf = "nameserver 127.0.0.11\nnameserver 10.0.0.1\n";
  assert.match(
    told({ [LOADER]: "\x001.2.5\x00" }, conf),
    /^warning: musl 1\.2\.5: it asks 10\.0\.0\.1 at the same time/,
  );
});

test("glibc is told with its version, and neither where there is neither", () => {
  const library = "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n";
  assert.match(told({ "/lib/aarch64-linux-gnu/libc.so.6": library }), /^ok: glibc 2\.36: .* one after the other/);
  assert.match(told({}), /^ok: neither glibc nor musl/);
  // Whatever a container puts there, nobody waits for it.
  mkdirSync(join(folder, "odd", "lib", "libc.so.6"), { recursive: true });
  const root = openSync(join(folder, "odd"), "r");
  assert.match(libcFinding(root, undefined).detail, /^neither glibc nor musl/);
  closeSync(root);
});

test("a list of packages that tells of musl again and again is gone through once", () => {
  // Looked for from each of them to the end, it would take hours.
  const endless = "P:musl\n".repeat((8 * 1024 * 1024) / 7);
  assert.match(told({ [LOADER]: "", "/lib/apk/db/installed": endless }), /musl of an unknown version/);
  const behind = `P:musl-utils\nV:9.9.9-r0\n\nP:musl\nA:x\n\nP:other\nV:1.1.1-r0\n`;
  assert.match(told({ [LOADER]: "", "/lib/apk/db/installed": behind }), /musl of an unknown version/);
});
