/**
 * Bundle: writes what a bug report needs into one archive. The file is created before anything is read, and only if there is
 * nothing at its path, not even a link: so nothing is overwritten, and nobody can make root write elsewhere.
 */
import { closeSync, constants, openSync, unlinkSync, writeSync } from "node:fs";
import { gzipSync } from "node:zlib";

import { Fault, codeOf } from "../../base/lib/fault.ts";
import { type BundleOptions, bundleContents } from "./contents.ts";
import { tarOf } from "./tar.ts";

export interface WrittenBundle {
  readonly files: number;
  readonly bytes: number;
}

/** Only its owner can read it. */
const MODE = 0o600;

export class BundleFile {
  readonly #path: string;
  readonly #fd: number;

  /** Creates the file; throws a Fault if something is there. */
  constructor(path: string) {
    this.#path = path;
    try {
      const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
      this.#fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, MODE);
    } catch (cause) {
      if (codeOf(cause) === "EEXIST") {
        throw new Fault("BUNDLE_EXISTS", `"${path}" exists, and dns11 does not overwrite it`, {
          remedy: "Choose the path of a file that does not exist yet.",
        });
      }
      throw new Fault("BUNDLE", `Cannot create "${path}"`, {
        cause,
        remedy: "Choose a path in a directory that exists and that you may write to.",
      });
    }
  }

  /** Collects and writes everything, and closes the file; on failure, removes it. */
  async write(options: BundleOptions): Promise<WrittenBundle> {
    try {
      const files = await bundleContents(options);
      const archive = gzipSync(tarOf(files, new Date()));
      for (let written = 0; written < archive.length;) written += writeSync(this.#fd, archive, written);
      closeSync(this.#fd);
      return { files: files.length, bytes: archive.length };
    } catch (error) {
      this.discard();
      throw error;
    }
  }

  /** Removes the file again. */
  discard(): void {
    closeSync(this.#fd);
    unlinkSync(this.#path);
  }
}
