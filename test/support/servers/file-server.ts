/**
 * FileServer: HTTP on the loopback of a network namespace, from one folder. `/whole/...` serves a file, `/cut/...` ends the
 * connection in its middle, and `/stalled/...` sends nothing more from there on. SHA256SUMS is always served whole.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { inNetns } from "../rig/netns.ts";
import { inTime } from "../rig/wait.ts";

const MAIN = fileURLToPath(new URL("./file-server-main.js", import.meta.url));

export class FileServer implements Disposable {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterableIterator<string>;

  private constructor(child: ChildProcess, lines: AsyncIterableIterator<string>, port: string) {
    this.#child = child;
    this.#lines = lines;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(netnsPath: string, folder: string): Promise<FileServer> {
    const [command = "", ...args] = inNetns(netnsPath, process.execPath, [MAIN, folder]);
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const { value } = await inTime(lines.next(), "the file server's port");
    return new FileServer(child, lines, String(value));
  }

  /** Waits until half of a file was sent, and nothing more comes. */
  async stalled(): Promise<void> {
    await inTime(this.#lines.next(), "a download to stall");
  }

  [Symbol.dispose](): void {
    this.#child.kill();
  }
}
