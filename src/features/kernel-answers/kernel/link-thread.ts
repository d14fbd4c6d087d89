/**
 * LinkThread: attaches programs in a thread of its own. The kernel makes the caller wait for its lock of all interfaces, and then for a
 * grace period of RCU: 14 ms on an idle machine, and longer while other programs change interfaces. Queries must not wait for that. The
 * thread takes 10 MB, so it ends when there has been nothing to attach for a while. Each thread leaves some 30 KB behind (koffi), so each
 * one waits twice as long as the one before.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";

import { KERNEL_ANSWER_LIMITS } from "../limits.ts";
import { NO_JITTER, backoffMs } from "../../../base/lib/retry.ts";
import { trimMalloc } from "../../../kernel/malloc.ts";
import { closeQuietly, duplicate } from "../../../kernel/libc.ts";

export interface LinkRequest {
  /** A descriptor of the network namespace. */
  readonly namespace: number;
  readonly program: number;
}

/** A thrown Fault would lose its class on the way between threads. */
export type LinkResult = { readonly link: number } | { readonly reason: string };

const MEMORY_MB_MAX = 16;

export class LinkThread {
  #worker: Worker | undefined;
  /** Resolves when the last thread has loaded what it needs, or has ended. */
  #loaded: Promise<unknown> = Promise.resolve();
  #starts = 0;
  #idleTimer: NodeJS.Timeout | undefined;
  /** Requests run one after the other, as the kernel would do them anyway. */
  #last: Promise<unknown> = Promise.resolve();

  /** Attaches a program to lo of a namespace; returns the descriptor of the link. */
  async attach({ namespace, program }: LinkRequest): Promise<number> {
    // Duplicates, because by the time the thread uses the numbers they may be those of other files.
    const request = { namespace: duplicate(namespace), program: -1 };
    try {
      request.program = duplicate(program);
      const done = this.#last.then(async () => await this.#ask(request));
      this.#last = done.catch(() => undefined);
      const result = await done;
      if ("reason" in result) throw new Error(result.reason);
      return result.link;
    } finally {
      for (const fd of Object.values(request)) closeQuietly(fd);
    }
  }

  close(): void {
    clearTimeout(this.#idleTimer);
    void this.#worker?.terminate();
    this.#worker = undefined;
  }

  /** Await it before this process exits: a process whose thread is just loading an addon is aborted. */
  async loaded(): Promise<void> {
    await this.#loaded;
  }

  async #ask(request: LinkRequest): Promise<LinkResult> {
    clearTimeout(this.#idleTimer);
    const worker = (this.#worker ??= this.#start());
    worker.ref();
    const ended = new AbortController();
    try {
      const exit = once(worker, "exit", ended);
      await Promise.race([this.#loaded, exit]);
      const message = once(worker, "message", ended);
      worker.postMessage(request);
      const [result] = (await Promise.race([message, exit])) as [LinkResult | number];
      if (typeof result === "number") throw new Error("the thread that attaches programs has ended");
      return result;
    } finally {
      ended.abort();
      worker.unref();
      this.#idleTimer = setTimeout(() => this.close(), this.#idleMs);
      this.#idleTimer.unref();
    }
  }

  get #idleMs(): number {
    return backoffMs(
      this.#starts - 1,
      KERNEL_ANSWER_LIMITS.threadIdleFirstMs,
      KERNEL_ANSWER_LIMITS.threadIdleLastMs,
      NO_JITTER,
    );
  }

  #start(): Worker {
    this.#starts++;
    const worker = new Worker(new URL("./link-thread-main.js", import.meta.url), {
      // The thread gets neither flags nor modules that are meant for the program.
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB_MAX },
    });
    // An error ends the thread, and the request that waits for it fails; the next request starts another thread.
    worker.on("error", () => undefined);
    this.#loaded = Promise.race(["message", "exit"].map(async (event) => await once(worker, event))).catch(
      () => undefined,
    );
    worker.on("exit", () => {
      if (this.#worker === worker) this.#worker = undefined;
      // The C library keeps 1.8 MB that the thread has freed, for another thread. This takes 0.3 ms.
      trimMalloc();
    });
    return worker;
  }
}
