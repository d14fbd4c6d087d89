/**
 * Fault: the error that dns11 throws for problems outside its code, such as those of the system or of user input: a
 * stable code to branch on, a message that says what was tried, and a remedy. A plain Error is an internal error and
 * keeps its stack.
 */

export interface FaultOptions {
  readonly remedy?: string;
  readonly cause?: unknown;
  readonly isFinal?: boolean;
}

export class Fault extends Error {
  override readonly name = "Fault";
  readonly code: string;
  /** What the reader can do about it, as a separate sentence. */
  readonly remedy: string | undefined;
  /** Retrying will not help. */
  readonly isFinal: boolean;

  constructor(code: string, message: string, options: FaultOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.remedy = options.remedy;
    this.isFinal = options.isFinal ?? false;
  }
}

/** Whether only an error in the program can have thrown it. */
export function isInternalError(thrown: unknown): boolean {
  return !(thrown instanceof Error) || [TypeError, RangeError, ReferenceError].some((kind) => thrown instanceof kind);
}

/** The message of a thrown value, with the messages of its causes. */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return thrown.cause === undefined ? thrown.message : `${thrown.message}: ${reasonOf(thrown.cause)}`;
}

/** The message of a thrown value, with what to do about it. */
export function reasonWithRemedy(thrown: unknown): string {
  const remedy = thrown instanceof Fault ? thrown.remedy : undefined;
  const reason = reasonOf(thrown);
  return remedy === undefined ? reason : `${reason.replace(/\.$/, "")}. ${remedy}`;
}

/** The code of a thrown value: a Fault's, Node's errno name, or undefined. */
export function codeOf(thrown: unknown): string | undefined {
  if (thrown instanceof Error && "code" in thrown && typeof thrown.code === "string") return thrown.code;
  return undefined;
}

/** An error at the engine's socket, with the path of that socket and a remedy. */
export function engineFault(error: unknown, socketPath: string): Fault {
  const status = error instanceof Error && "statusCode" in error ? error.statusCode : undefined;
  if (status === 404) {
    return new Fault("ENGINE_NOT_FOUND", "Not found by the engine", {
      cause: error,
      remedy: "The container, image or network was removed in the meantime. Run the command again.",
    });
  }
  switch (codeOf(error)) {
    case "ENOENT":
      return new Fault("ENGINE_NO_SOCKET", `No engine socket at "${socketPath}"`, {
        cause: error,
        remedy: "Check that Docker is installed and running, or set its socket with -H unix://PATH or DOCKER_HOST.",
      });
    case "EACCES":
    case "EPERM":
      return new Fault("ENGINE_PERMISSION", `Permission denied at the engine socket "${socketPath}"`, {
        cause: error,
        remedy: "Run this command as root, for example with sudo.",
      });
    case "ECONNREFUSED":
      return new Fault("ENGINE_AWAY", `Connection refused at the engine socket "${socketPath}"`, {
        cause: error,
        remedy: "Check that dockerd is running: systemctl status docker.",
      });
    default:
      return new Fault("ENGINE_AWAY", `The engine at "${socketPath}" did not answer`, {
        cause: error,
        remedy: "Check that dockerd is running: systemctl status docker.",
      });
  }
}
