/**
 * BareMachine: a kernel with nothing but Node and one program as its first process, which has the kernel load and attach the program that
 * answers in it. So a verifier is tried in a quarter of a minute.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { cachedRootfs } from "../support/engine/suite.ts";
import { run, stdoutOf } from "../support/program/command.ts";
import { type Architecture, emulate } from "./emulator.ts";
import { backportsOf, kernelPackages } from "./kernel-package.ts";
import type { Kernel } from "./machines.ts";
import { partsFor } from "./program-of.ts";

export type BareOutcome =
  | { readonly failed: string }
  | {
      readonly kernel: string;
      /** How many packets the program has answered. */
      readonly answered: number;
      /** The code of the failure to attach it to lo. */
      readonly notAttached: string | null;
    };

const PROGRAM = fileURLToPath(new URL("../features/kernel-answers/bare-main.js", import.meta.url));
const PACKAGES = ["libc6", "libstdc++6"];
/** What Node is linked to, of those packages and the ones that they need. */
const LIBRARY = /^(?:ld-linux-.*|lib(?:c|m|dl|pthread|rt|stdc\+\+|gcc_s))\.so\.\d+$/;
const FOLDER_OF: Readonly<Record<Architecture, string>> = { amd64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" };
const MEMORY = ["-m", "1G"];
const TIMEOUT_MS = 900_000;

export async function tryVerifier(kernel: Kernel): Promise<BareOutcome> {
  const { name, suite, architecture } = kernel;
  const packages = async (): Promise<string> => [...PACKAGES, ...(await kernelPackages(kernel))].join();
  const sources = backportsOf(kernel);
  const root = await cachedRootfs(`bare-${name}`, suite, packages, { sources, architecture, isExtracted: true });
  const folder = mkdtempSync(join(tmpdir(), "d11-bare-"));
  try {
    const log = await emulate(
      architecture,
      {
        kernel: imageIn(root),
        initrd: await makeInitrd(root, architecture, folder),
        // Words after the hyphens are those of the first process.
        kernelWords: ["rdinit=/bin/node", "--", "/bare-main.js"],
        devices: MEMORY,
        timeoutMs: TIMEOUT_MS,
      },
      folder,
    );
    const line = log.split(/\r?\n/).find((each) => each.startsWith("{"));
    return line === undefined ? { failed: log.slice(-2_000) } : (JSON.parse(line) as BareOutcome);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Not compressed: unpacking would take longer. */
async function makeInitrd(root: string, architecture: Architecture, folder: string): Promise<string> {
  const tree = join(folder, "tree");
  const put = (from: string, to: string): void => {
    mkdirSync(dirname(join(tree, to)), { recursive: true });
    cpSync(from, join(tree, to), { recursive: true, dereference: true });
  };
  const { node, packages } = await partsFor(architecture);
  put(node, "bin/node");
  put(PROGRAM, "bare-main.js");
  put("package.json", "package.json");
  put("node_modules/koffi", "node_modules/koffi");
  for (const [from, place] of packages) put(from, join("node_modules", place));
  for (const [name, from] of librariesIn(root, architecture)) {
    const place = join("lib", FOLDER_OF[architecture], name);
    put(from, place);
    // Where the kernel looks for the first of them.
    if (name.startsWith("ld-linux-")) symlinkSync(join("/", place), join(tree, "lib", name));
  }
  symlinkSync("lib", join(tree, "lib64"));
  const initrd = join(folder, "initrd");
  const pack = 'cd "$1" && find . | busybox cpio --quiet -o -H newc >"$2"';
  stdoutOf(await run("sh", ["-c", pack, "sh", tree, initrd]), "cpio");
  return initrd;
}

/** Newer packages have it beside the modules. */
function imageIn(root: string): string {
  const found = [join(root, "boot"), join(root, "usr/lib/modules")]
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: "utf8" }).map((file) => join(folder, file)))
    .find((file) => basename(file).startsWith("vmlinuz"));
  if (found === undefined) throw new Error(`no kernel in ${root}`);
  return found;
}

/** Older releases have some of them outside usr. */
function librariesIn(root: string, architecture: Architecture): ReadonlyMap<string, string> {
  const folders = ["lib", "usr/lib"]
    .map((lib) => join(root, lib, FOLDER_OF[architecture]))
    .filter((each) => existsSync(each));
  return new Map(
    folders.flatMap((folder) =>
      readdirSync(folder)
        .filter((name) => LIBRARY.test(name))
        .map((name) => [name, join(folder, name)]),
    ),
  );
}
