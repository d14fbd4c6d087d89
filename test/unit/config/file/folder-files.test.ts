// Proves which folders and files may decide what names mean.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { readKubeDnsFolder } from "../../../../src/config/file/named-folders.ts";
import { makeFolder } from "../../../support/rig/folder.ts";

const TEXT = '["10.0.0.1"]';

test("a folder or a file that every user may write is refused", async () => {
  const folder = makeFolder("map");
  const file = join(folder, "upstreamNameservers");
  writeFileSync(file, TEXT);
  assert.equal((await readKubeDnsFolder(folder)).values.dns?.length, 1);
  chmodSync(file, 0o666);
  await assert.rejects(
    readKubeDnsFolder(folder),
    /upstreamNameservers: cannot be read: every user may write it: chmod o-w/,
  );
  chmodSync(file, 0o644);
  chmodSync(folder, 0o777);
  await assert.rejects(readKubeDnsFolder(folder), /every user may write it/);
});

test(
  "one that is mounted read-only is not, whatever its mode",
  { skip: process.getuid?.() !== 0 && "needs root" },
  () => {
    const folder = makeFolder("map");
    const mounted = join(folder, "mounted");
    mkdirSync(mounted);
    const script = [
      `mount -t tmpfs -o mode=777 none ${mounted}`,
      `echo '${TEXT}' > ${mounted}/upstreamNameservers`,
      `mount -o remount,ro ${mounted}`,
      `exec ${process.execPath} --input-type=module -e "$0"`,
    ].join(" && ");
    const module = new URL("../../../../src/config/file/named-folders.js", import.meta.url).pathname;
    const program = `
    const { readKubeDnsFolder } = await import(${JSON.stringify(module)});
    console.log((await readKubeDnsFolder(${JSON.stringify(mounted)})).values.dns.length);`;
    // The mount is in a namespace of its own, which ends with the command.
    const output = execFileSync("unshare", ["--mount", "sh", "-c", script, program], { encoding: "utf8" });
    assert.equal(output.trim(), "1");
  },
);
