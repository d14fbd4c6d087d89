/**
 * The machine's Node inside containers of any engine, also with the root file system of another release: the program,
 * its libraries and the compiled tests, in a folder that machine and engine share.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

import { check } from "../program/command.ts";
import type { Engine } from "./engine.ts";

const COMPILED = fileURLToPath(new URL("../../../", import.meta.url));
const MODULES = fileURLToPath(new URL("../../../../node_modules/", import.meta.url));
const MOUNT_POINT = "/inside";

export interface InsideNode {
  /** Arguments of `docker run`. */
  readonly args: readonly string[];
  /** Command for a program of the tests, a path below test/; the packages koffi and dns-packet are available. */
  readonly command: (program: string) => readonly string[];
}

export async function insideNode(engine: Engine): Promise<InsideNode> {
  const folder = join(engine.folder, "inside");
  await mkdir(folder, { recursive: true });
  const listed = await check("ldd", [process.execPath]);
  // "libc.so.6 => /lib/libc.so.6 (0x1)", and the loader as a bare path.
  const libraries = [...listed.matchAll(/(\/\S+) \(0x/g)].map(([, path = ""]) => path);
  const loader = libraries.find((path) => /\/ld[^/]*\.so/.test(path)) ?? "";
  const packages = ["koffi", "@koromix", "dns-packet", "@leichtgewicht"].map((name) => join(MODULES, name));
  const compiled = ["src", "test"].map((name) => join(COMPILED, name));
  await mkdir(join(folder, "node_modules"));
  await putInto(folder, [...libraries, process.execPath]);
  await putInto(join(folder, "node_modules"), packages);
  await putInto(folder, compiled);
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  return {
    args: [`--volume=${folder}:${MOUNT_POINT}:ro`],
    command: (program) => [
      join(MOUNT_POINT, basename(loader)),
      "--library-path",
      MOUNT_POINT,
      join(MOUNT_POINT, basename(process.execPath)),
      join(MOUNT_POINT, "test", program),
    ],
  };
}

/** Hard links, which cost a tenth of copies, where the folder is on the same file system. With cp: Node takes a second for as many files. */
async function putInto(folder: string, paths: readonly string[]): Promise<void> {
  const script = 'cp -rL --link "$@" 2>/dev/null || cp -rL --remove-destination "$@"';
  await check("sh", ["-c", script, "cp", ...paths, folder]);
}
