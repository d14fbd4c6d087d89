// Owns a folder that stands for the root file system of an engine's host: real files, opened as dns11 opens that host's.

import { closeSync, constants, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const O_PATH = 0o10000000;

export class MachineRoot implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "d11-root-"));
  // As EngineHost has it.
  readonly root = openSync(this.folder, O_PATH | constants.O_DIRECTORY);

  constructor(files: Readonly<Record<string, string>> = {}) {
    for (const [path, text] of Object.entries(files)) this.write(path, text);
  }

  // Where a path of that host's is for the test.
  at(path: string): string {
    return join(this.folder, path);
  }

  // In place, if the file is there already.
  write(path: string, text: string): void {
    mkdirSync(dirname(this.at(path)), { recursive: true });
    writeFileSync(this.at(path), text);
  }

  [Symbol.dispose](): void {
    closeSync(this.root);
    rmSync(this.folder, { recursive: true });
  }
}
