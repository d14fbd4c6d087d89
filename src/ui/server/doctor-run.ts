/**
 * DoctorRun: runs the doctor for the page, as a program of its own with the rights of the user who started the page: the page can do
 * nothing that this user cannot. One at a time, for a limited time.
 */
import { spawn } from "node:child_process";
import type { ServerResponse } from "node:http";

import type { DoctorLine } from "../../base/model/finding.ts";
import { Fault } from "../../base/lib/fault.ts";

const DOCTOR_MS = 120_000;
const WORD_CHARS_MAX = 255;
const STDERR_CHARS_MAX = 4_096;
/** How the last line of a complete run begins. */
const LAST_LINE = '\n{"problems":';

export class DoctorRun {
  readonly #command: readonly string[];
  readonly #timeoutMs: number;
  #isRunning = false;

  /** `command` is the program with its arguments; the choice of containers follows. */
  constructor(command: readonly string[], timeoutMs = DOCTOR_MS) {
    this.#command = command;
    this.#timeoutMs = timeoutMs;
  }

  /** Sends its lines. Resolves when it has ended, or its reader has gone. */
  async pass(body: Buffer, outgoing: ServerResponse): Promise<void> {
    const choice = choiceOf(body);
    if (this.#isRunning) {
      throw new Fault("UI_BUSY", "The checks are already running", { remedy: "Wait until they have ended." });
    }
    this.#isRunning = true;
    try {
      await this.#run(choice, outgoing);
    } finally {
      this.#isRunning = false;
    }
  }

  async #run(choice: readonly string[], outgoing: ServerResponse): Promise<void> {
    const [program = "", ...args] = this.#command;
    const child = spawn(program, [...args, ...choice], { stdio: ["ignore", "pipe", "pipe"] });
    const timer = setTimeout(() => child.kill("SIGKILL"), this.#timeoutMs);
    const stop = (): void => void child.kill("SIGKILL");
    outgoing.once("close", stop);
    let errors = "";
    let last = "\n";
    let isComplete = false;
    child.stderr.on("data", (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(0, STDERR_CHARS_MAX)));
    outgoing.writeHead(200, { "content-type": "application/x-ndjson" });
    outgoing.flushHeaders();
    child.stdout.on("data", (chunk: Buffer) => {
      const text = last + chunk.toString("latin1");
      isComplete ||= text.includes(LAST_LINE);
      last = text.slice(-LAST_LINE.length);
      outgoing.write(chunk);
    });
    await new Promise<void>((resolve) => {
      child.on("error", () => resolve());
      child.on("close", () => resolve());
    });
    clearTimeout(timer);
    outgoing.off("close", stop);
    // A line that was cut off would swallow the error.
    if (!last.endsWith("\n")) outgoing.write("\n");
    if (!isComplete) outgoing.write(`${JSON.stringify(failure(errors, child.signalCode))}\n`);
    outgoing.end();
  }
}

function failure(errors: string, signal: NodeJS.Signals | null): DoctorLine {
  if (errors.trim() !== "") return { error: errors.trim().replace(/^dns11: /, ""), code: "DOCTOR" };
  const error = `The checks were ended (${signal ?? "no result"}) before they were complete`;
  return { error, code: "DOCTOR", remedy: "Run them in a terminal: dns11 doctor" };
}

/** Makes arguments, of which none can be taken for an option. */
function choiceOf(body: Buffer): string[] {
  const { container, project } = fieldsOf(body);
  return [
    ...(project === undefined ? [] : [`--project=${word(project)}`]),
    ...(container === undefined ? [] : ["--", word(container)]),
  ];
}

function fieldsOf(body: Buffer): Readonly<Record<string, unknown>> {
  if (body.length === 0) return {};
  let fields: unknown;
  try {
    fields = JSON.parse(body.toString());
  } catch (cause) {
    throw new Fault("NOT_JSON", "Invalid JSON in the request body", { cause });
  }
  const isObject = typeof fields === "object" && fields !== null && !Array.isArray(fields);
  if (isObject && Object.keys(fields as object).every((key) => key === "container" || key === "project"))
    return fields as Readonly<Record<string, unknown>>;
  throw new Fault("BAD_BODY", "Invalid request body: use a JSON object with the fields container, project");
}

function word(value: unknown): string {
  if (typeof value === "string" && value !== "" && value.length <= WORD_CHARS_MAX && !value.includes("\0"))
    return value;
  throw new Fault("BAD_BODY", `Invalid name: use a text of at most ${WORD_CHARS_MAX} characters`);
}
