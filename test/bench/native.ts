// Compiler of the bench's C programs beside this file. Without a compiler their rows are skipped.

import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { check, run } from "../support/program/command.ts";

const SOURCES = new URL("../../../test/bench/", import.meta.url);

// Path of the program in that folder; undefined without a compiler.
export async function compile(
  name: "floor" | "crowd" | "tcp-clients" | "veth-load",
  folder: string,
): Promise<string | undefined> {
  const found = await run("sh", ["-c", "command -v cc"]);
  if (found.code !== 0) {
    console.error(`bench: no compiler (cc); skipping the rows that need ${name}.c`);
    return undefined;
  }
  const program = join(folder, name);
  await check("cc", ["-O2", "-o", program, fileURLToPath(new URL(`${name}.c`, SOURCES))]);
  return program;
}
