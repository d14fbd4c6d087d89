/**
 * Owns the machine's Node inside containers of any engine, also of one whose root file system is another release's: the
 * program, the libraries that it wants and the compiled tests, in a folder that machine and engine both see.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

import { check } from "../program/command.ts";
import type { Engine } from "./engine.ts";

const COMPILED = fileURLToPath(new URL("../../../", import.meta.url));
const MODULES = fileURLToPath(new URL("../../../../node_modules/", import.meta.url));
const SEEN_AS = "/inside";

export interface InsideNode {
  /** Of `docker run`. */
  readonly args: readonly string[];
  /** For a program of the tests, a path below test/; of packages it finds koffi and dns-packet. */
  readonly command: (program: string) => readonly string[];
}

export async function insideNode(engine: Engine): Promise<InsideNode> {
  const folder = join(engine.folder, "inside");
  await mkdir(folder, { recursive: true });
  const listed = await check("ldd", [process.execPath]);
  // "libc.so.6 => /lib/libc.so.6 (0x1)", and the loader as a path alone.
  const libraries = [...listed.matchAll(/(\/\S+) \(0x/g)].map(([, path = ""]) => path);
  const loader = libraries.find((path) => /\/ld[^/]*\.so/.test(path)) ?? "";
  const packages = ["koffi", "@koromix", "dns-packet", "@leichtgewicht"].map((name) => join(MODULES, name));
  const compiled = ["src", "test"].map((name) => join(COMPILED, name));
  await mkdir(join(folder, "node_modules"));
  // By the machine's cp: Node takes a second for as many files.
  await check("cp", ["--dereference", ...libraries, process.execPath, folder]);
  await check("cp", ["--recursive", ...packages, join(folder, "node_modules")]);
  await check("cp", ["--recursive", ...compiled, folder]);
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  return {
    args: [`--volume=${folder}:${SEEN_AS}:ro`],
    command: (program) => [
      join(SEEN_AS, basename(loader)),
      "--library-path",
      SEEN_AS,
      join(SEEN_AS, basename(process.execPath)),
      join(SEEN_AS, "test", program),
    ],
  };
}
