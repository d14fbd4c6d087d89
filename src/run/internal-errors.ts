/**
 * InternalErrors: where the guard reports internal errors. Each is counted and logged once with its stack; repetitions
 * are logged as counts. Errors that no guard caught end here too instead of ending the process.
 */
import { LIMITS } from "../base/limits.ts";
import { reasonOf } from "../base/lib/fault.ts";
import { type EntryPoint, guard } from "../base/lib/guard.ts";
import type { Log } from "../base/log/log.ts";
import type { RateLimitedLog } from "../base/log/rate-limited-log.ts";

interface InternalErrorsParts {
  readonly log: Log;
  readonly limitedLog: RateLimitedLog;
  readonly onInternalError: () => void;
  /** The container of a client number; undefined once the client is gone. */
  readonly containerOf: (client: number) => string | undefined;
}

export class InternalErrors {
  readonly #parts: InternalErrorsParts;
  /** Stacks already logged. */
  readonly #logged = new Set<string>();
  readonly #onUncaught = (error: unknown): void => this.#report(error, "elsewhere", 0);

  constructor(parts: InternalErrorsParts) {
    this.#parts = parts;
  }

  /** Installs the guard. `currentClient`, which holds the number of the client being served, may outlive the process. */
  begin(currentClient: Uint32Array): void {
    guard.install((error, entryPoint, client) => this.#report(error, entryPoint, client), currentClient);
    process.on("uncaughtException", this.#onUncaught);
  }

  end(): void {
    process.off("uncaughtException", this.#onUncaught);
    guard.uninstall();
  }

  #report(error: unknown, entryPoint: EntryPoint, client: number): void {
    const { log, limitedLog, onInternalError, containerOf } = this.#parts;
    onInternalError();
    const container = client === 0 ? undefined : containerOf(client);
    const fields = { entryPoint, ...(container !== undefined && { container }) };
    const stack = stackOf(error);
    if (!this.#logged.has(stack) && this.#logged.size < LIMITS.internalErrorsLogged) {
      this.#logged.add(stack);
      log.error({ ...fields, err: error }, "internal error, one task was aborted; please report it");
    } else
      limitedLog.log("warn", stack, { ...fields, reason: reasonOf(error) }, "internal error repeated", {
        topic: "internal error",
      });
  }
}

/** Where it was thrown, without the message, which may describe a single packet. */
function stackOf(error: unknown): string {
  const lines = error instanceof Error ? (error.stack ?? "").split("\n") : [];
  return (
    lines
      .filter((line) => line.trimStart().startsWith("at "))
      .slice(0, 4)
      .join("\n") || String(error)
  );
}
