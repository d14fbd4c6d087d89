/** The parts of dns11 that depend on the architecture: Node, and the library that calls into libc. */
import { join, resolve } from "node:path";

import { lockedPackages } from "../support/program/locked-packages.ts";
import type { Architecture } from "./emulator.ts";

/** By Node's name. */
const NODES_NAME: Readonly<Record<Architecture, string>> = { amd64: "x64", arm64: "arm64" };
const NODE_LOCK = "scripts/release/node";

export interface ProgramParts {
  readonly node: string;
  /** Folders of packages, and where each is below node_modules. */
  readonly packages: readonly (readonly [folder: string, place: string])[];
}

/** For this machine's own architecture what runs here, for another one what a release brings. */
export async function partsFor(architecture: Architecture): Promise<ProgramParts> {
  const arch = NODES_NAME[architecture];
  const library = join("@koromix", `koffi-linux-${arch}`);
  const [node, packages] =
    arch === process.arch
      ? [process.execPath, resolve("node_modules")]
      : [await releasedNode(arch), await packagesFor(arch)];
  return { node, packages: [[join(packages, library), library]] };
}

function flagsFor(arch: string): readonly string[] {
  return ["--os=linux", `--cpu=${arch}`, "--libc=glibc", "--omit=dev"];
}

async function releasedNode(arch: string): Promise<string> {
  const name = `node-linux-${arch}`;
  const folder = await lockedPackages(NODE_LOCK, (all) => `node-${all[name]}-${arch}`, undefined, flagsFor(arch));
  return join(folder, "node_modules", name, "bin", "node");
}

async function packagesFor(arch: string): Promise<string> {
  const folder = await lockedPackages(".", ({ koffi }) => `koffi-${koffi}-${arch}`, undefined, flagsFor(arch));
  return join(folder, "node_modules");
}
