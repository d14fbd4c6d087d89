/**
 * InternalErrors: where the guard reports internal errors. Each is counted and logged once with its stack; repetitions
 * are logged as counts. Errors that no guard caught end here too instead of ending the process.
 */
import { LIMITS } from "../base/limits.ts";
import { reasonOf } from "../base/lib/fault.ts";
import { type Entrance, guard } from "../base/lib/guard.ts";
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
  readonly #told = new Set<string>();
  readonly #onUncaught = (error: unknown): void => this.#tell(error, "elsewhere", 0);

  constructor(parts: InternalErrorsParts) {
    this.#parts = parts;
  }

  /** Installs the guard. `inWork`, which holds the number of the client being served, may outlive the process. */
  begin(inWork: Uint32Array): void {
    guard.install((error, entrance, who) => this.#tell(error, entrance, who), inWork);
    process.on("uncaughtException", this.#onUncaught);
  }

  end(): void {
    process.off("uncaughtException", this.#onUncaught);
    guard.uninstall();
  }

  #tell(error: unknown, entrance: Entrance, who: number): void {
    const { log, limitedLog: repeats, onInternalError: onDefect, containerOf } = this.#parts;
    onDefect();
    const container = who === 0 ? undefined : containerOf(who);
    const about = { entrance, ...(container !== undefined && { container }) };
    const stack = stackOf(error);
    if (!this.#told.has(stack) && this.#told.size < LIMITS.internalErrorsLogged) {
      this.#told.add(stack);
      log.error({ ...about, err: error }, "internal error, one task was aborted; please report it");
    } else repeats.log("warn", stack, { ...about, reason: reasonOf(error) }, "internal error repeated", "defect");
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
