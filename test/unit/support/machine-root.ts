// Folder that simulates the root file system of an engine's host: real files, opened as dns11 opens those of the host.

import { closeSync, constants, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const O_PATH = 0o10000000;

export class MachineRoot implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "d11-root-"));
  // A descriptor as in EngineHost.
  readonly root = openSync(this.folder, O_PATH | constants.O_DIRECTORY);

  constructor(files: Readonly<Record<string, string>> = {}) {
    for (const [path, text] of Object.entries(files)) this.write(path, text);
  }

  // The test's path of a path on that host.
  at(path: string): string {
    return join(this.folder, path);
  }

  // In place, if the file exists.
  write(path: string, text: string): void {
    mkdirSync(dirname(this.at(path)), { recursive: true });
    writeFileSync(this.at(path), text);
  }

  [Symbol.dispose](): void {
    closeSync(this.root);
    rmSync(this.folder, { recursive: true });
  }
}
