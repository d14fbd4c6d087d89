/**
 * Fault is what dns11 throws when the world, or its user, is at fault: a stable code to branch on, a message that
 * says what was tried, and a remedy that says what to do. A plain Error is a defect of ours and keeps its stack.
 */

export interface FaultOptions {
  readonly remedy?: string;
  readonly cause?: unknown;
  readonly isFinal?: boolean;
}

export class Fault extends Error {
  override readonly name = "Fault";
  readonly code: string;
  /** What the reader can do about it, as a sentence of its own. */
  readonly remedy: string | undefined;
  /** Trying again will not help. */
  readonly isFinal: boolean;

  constructor(code: string, message: string, options: FaultOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.remedy = options.remedy;
    this.isFinal = options.isFinal ?? false;
  }
}

/** Whether only a mistake in the program can have thrown it. */
export function isInternalError(thrown: unknown): boolean {
  return !(thrown instanceof Error) || [TypeError, RangeError, ReferenceError].some((kind) => thrown instanceof kind);
}

/** The message of anything that was thrown, with the messages of its causes. */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return thrown.cause === undefined ? thrown.message : `${thrown.message}: ${reasonOf(thrown.cause)}`;
}

/** The code of anything that was thrown: a Fault's, Node's errno word, or nothing. */
export function codeOf(thrown: unknown): string | undefined {
  if (thrown instanceof Error && "code" in thrown && typeof thrown.code === "string") return thrown.code;
  return undefined;
}
