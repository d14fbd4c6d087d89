// Owns the compiling of the bench's programs in C, which stand beside this file. Where there is no compiler, what they
// measure is left out.

import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { check, run } from "../support/program/command.ts";

const SOURCES = new URL("../../../test/bench/", import.meta.url);

// The program, in that folder; nothing where it cannot be made.
export async function compile(name: "floor" | "crowd" | "tcp-clients", folder: string): Promise<string | undefined> {
  const found = await run("sh", ["-c", "command -v cc"]);
  if (found.code !== 0) {
    console.error(`bench: there is no compiler (cc), so what needs ${name}.c is left out`);
    return undefined;
  }
  const program = join(folder, name);
  await check("cc", ["-O2", "-o", program, fileURLToPath(new URL(`${name}.c`, SOURCES))]);
  return program;
}
