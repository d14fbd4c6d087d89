// EngineProxy: a socket that passes requests on to an engine, but for containers that it cannot inspect. It is in the engine's own
// namespaces, where dns11 looks for those of containers.
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { inTime } from "../rig/wait.ts";
import type { Engine } from "./engine.ts";

const MAIN = fileURLToPath(new URL("./engine-proxy-main.js", import.meta.url));

export class EngineProxy implements Disposable {
  // As an engine's.
  readonly host: string;
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterableIterator<string>;

  private constructor(child: ChildProcess, lines: AsyncIterableIterator<string>, path: string) {
    this.host = `unix://${path}`;
    this.#child = child;
    this.#lines = lines;
  }

  static async start({ host, pid, folder }: Engine): Promise<EngineProxy> {
    const path = join(folder, "proxy.sock");
    const program = [process.execPath, MAIN, host.replace("unix://", ""), path];
    const child = spawn("nsenter", ["-t", String(pid), "-m", "-n", ...program], { stdio: ["pipe", "pipe", "inherit"] });
    const proxy = new EngineProxy(child, createInterface({ input: child.stdout })[Symbol.asyncIterator](), path);
    await proxy.#done();
    return proxy;
  }

  // From now on it cannot inspect this container; without one, it can inspect all again.
  async fail(id = ""): Promise<void> {
    this.#child.stdin?.write(`${id}\n`);
    await this.#done();
  }

  // From now on the inspects of this container wait, until `fail` ends that.
  async delay(id: string): Promise<void> {
    this.#child.stdin?.write(`wait ${id}\n`);
    await this.#done();
  }

  [Symbol.dispose](): void {
    this.#child.kill();
  }

  async #done(): Promise<void> {
    await inTime(this.#lines.next(), "the proxy");
  }
}
