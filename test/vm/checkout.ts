/** Checkout: the program, its packages and its tests as a disk for a machine, with a Node. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { run, stdoutOf } from "../support/program/command.ts";
import { makeDisk } from "./disk.ts";
import { type Kernel, TESTS_FILE, testsOf } from "./machines.ts";
import { partsFor } from "./program-of.ts";

const SIZE = "2G";
const PARTS = ["dist", "node_modules", "scripts", "test", "docs", "package.json", "package-lock.json"];

/** Returns the image, which replaces that of the machine before. */
export async function makeCheckout(source: string, { suite, architecture }: Kernel, folder: string): Promise<string> {
  const copy = join(folder, "checkout");
  mkdirSync(join(copy, "bin"), { recursive: true });
  for (const part of PARTS) stdoutOf(await run("cp", ["-r", part, copy], { cwd: source }), "cp");
  const { node, packages } = await partsFor(architecture);
  cpSync(node, join(copy, "bin", "node"), { dereference: true });
  for (const [from, place] of packages) {
    cpSync(from, join(copy, "node_modules", place), { recursive: true, dereference: true });
  }
  // That of Debian 11 cannot sleep for ever.
  if (architecture === "amd64") {
    stdoutOf(await run("sh", ["-c", 'cp "$(command -v busybox)" "$1"', "sh", join(copy, "bin")]), "cp");
  }
  writeFileSync(join(copy, TESTS_FILE), JSON.stringify(testsOf(suite)));
  const image = join(folder, "checkout.ext4");
  await makeDisk(copy, image, SIZE);
  rmSync(copy, { recursive: true });
  return image;
}
