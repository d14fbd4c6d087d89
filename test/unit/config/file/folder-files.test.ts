// Proves which folders and files may decide what names mean.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { listFolder, readOwnText } from "../../../../src/config/file/files.ts";
import { makeFolder } from "../../../support/rig/folder.ts";

const TEXT = '["10.0.0.1"]';

async function read(folder: string): Promise<string[]> {
  const names = await listFolder(folder, /^\./);
  return await Promise.all(names.map(async (name) => await readOwnText(join(folder, name))));
}

test("a folder or a file that every user may write is refused", async () => {
  const folder = makeFolder("map");
  const file = join(folder, "upstreamNameservers");
  writeFileSync(file, TEXT);
  assert.deepEqual(await read(folder), [TEXT]);
  chmodSync(file, 0o666);
  await assert.rejects(read(folder), /upstreamNameservers: cannot be read: every user may write it: chmod o-w/);
  chmodSync(file, 0o644);
  chmodSync(folder, 0o777);
  await assert.rejects(read(folder), /every user may write it/);
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
    const module = new URL("../../../../src/config/file/files.js", import.meta.url).pathname;
    const program = `
    const { listFolder, readOwnText } = await import(${JSON.stringify(module)});
    const [name] = await listFolder(${JSON.stringify(mounted)}, /^\\./);
    process.stdout.write(await readOwnText(${JSON.stringify(mounted)} + "/" + name));`;
    // The mount is in a namespace of its own, which ends with the command.
    const output = execFileSync("unshare", ["--mount", "sh", "-c", script, program], { encoding: "utf8" });
    assert.equal(output.trim(), TEXT);
  },
);
