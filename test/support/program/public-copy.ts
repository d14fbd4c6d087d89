/**
 * PublicCopy: the program, its packages and Node in a folder that every user can enter, as where it is installed. A checkout may
 * be in a home folder that only its owner can enter.
 */
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

import { makeFolder } from "../rig/folder.ts";
import { run, stdoutOf } from "./command.ts";

const CHECKOUT = fileURLToPath(new URL("../../../..", import.meta.url));
/** By the rule for new files, not as in the checkout, whose files may be private, too. */
const COPY = `umask 022; cp -rL --parents --no-preserve=mode "$@"`;

type Lock = { readonly packages: Readonly<Record<string, { readonly dev?: boolean }>> };

export class PublicCopy {
  static #made: Promise<PublicCopy> | undefined;
  readonly node: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.node = join(folder, "node");
    this.#folder = folder;
  }

  /** One for all tests of a process. */
  static async get(): Promise<PublicCopy> {
    PublicCopy.#made ??= PublicCopy.#make();
    return await PublicCopy.#made;
  }

  static async #make(): Promise<PublicCopy> {
    const folder = makeFolder("public");
    chmodSync(folder, 0o755);
    const { packages } = JSON.parse(readFileSync(join(CHECKOUT, "package-lock.json"), "utf8")) as Lock;
    const needed = Object.entries(packages).filter(([path, { dev }]) => path !== "" && dev !== true);
    // Some are for other platforms.
    const paths = ["package.json", "dist", ...needed.map(([path]) => path)].filter((path) =>
      existsSync(join(CHECKOUT, path)),
    );
    stdoutOf(await run("sh", ["-c", COPY, "sh", ...paths, folder], { cwd: CHECKOUT }), "cp");
    const copy = new PublicCopy(folder);
    stdoutOf(await run("install", ["-m", "755", process.execPath, copy.node]), "install");
    return copy;
  }

  /** Where a file of the checkout is in the copy. */
  pathOf(file: string): string {
    return join(this.#folder, relative(CHECKOUT, file));
  }
}
