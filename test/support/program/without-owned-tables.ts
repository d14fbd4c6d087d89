/**
 * A command in front of a program for which the kernel has no nftables tables that end with their process: it gets the
 * error that an older kernel gives for the unknown flag of a table.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { check } from "./command.ts";

const SOURCE = fileURLToPath(new URL("../../../../test/support/program/without-owned-tables.c", import.meta.url));

/** The same for a kernel without tables of nftables. */
export async function withoutTables(folder: string): Promise<readonly string[]> {
  return [...(await withoutOwnedTables(folder)), "NO_TABLES=1"];
}

/** The folder is to hold what is preloaded. */
export async function withoutOwnedTables(folder: string): Promise<readonly string[]> {
  const library = join(folder, "without-owned-tables.so");
  await check("gcc", ["-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"]);
  return ["env", `LD_PRELOAD=${library}`];
}
