// @ts-check
/**
 * The report that a test file's process prints for scripts/test.mjs: its tests as Node's spec reporter writes them, and
 * after a marker what belongs at the end of the whole run, the counts and the failures in full.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { spec as Spec } from "node:test/reporters";

/** No test prints this. */
export const MARK = "\u001etest file: ";
/** Counts of Node's runner, in its order. */
export const COUNTS = /** @type {const} */ (["tests", "suites", "pass", "fail", "cancelled", "skipped", "todo"]);

/** @typedef {Record<typeof COUNTS[number], number>} Counts */
/** Seconds of a processor: of the test's own process, and of the programs that it has waited for, with theirs. How often what takes long was started. */
/** @typedef {{ readonly own: number, readonly programs: number, readonly started: Readonly<Record<string, number>> }} Costs */
/** Of each file, where several share a process, by its path; with its duration in seconds. @typedef {Record<string, Costs & { readonly wall: number }>} FileCosts */
/** @typedef {{ readonly counts: Counts, readonly failures: string, readonly costs?: Costs, readonly files?: FileCosts }} FileReport */

/** So long may what is left of a failed test take to end. */
const LEFT_OPEN_MS = 5000;
const COUNT = new RegExp(`^(${COUNTS.join("|")}|duration_ms) ([\\d.]+)$`);

/** @param {AsyncIterable<import("node:test/reporters").TestEvent>} events */
// oxlint-disable-next-line import/no-default-export -- Node requires it of a reporter.
export default async function* report(events) {
  // @ts-expect-error The types of Node 20 have it as a function; it is a stream to be made.
  const spec = new Spec().setEncoding("utf8");
  const counts = noCounts();
  const seen = [];
  const end = new EndOfFailed();
  for await (const event of events) {
    end.note(event);
    if (event.type === "test:fail" && event.data.details.type !== "suite") {
      const evidence = Reflect.get(globalThis, EVIDENCE)?.() ?? "";
      if (evidence !== "") seen.push(`What "${event.data.name}" saw last:\n${evidence}\n`);
    }
    const [, name, value] = (isClosing(event) && COUNT.exec(event.data.message)) || [];
    if (name === undefined) spec.write(event);
    else if (name !== "duration_ms") counts[/** @type {keyof Counts} */ (name)] = Number(value);
    yield spec.read() ?? "";
  }
  // It prints the failures at the end.
  spec.end();
  yield `${MARK}${JSON.stringify({ counts, failures: [spec.read() ?? "", ...seen].join("\n"), costs: costs(), ...(Object.keys(files).length > 0 ? { files } : {}) })}\n`;
}

/**
 * A test that fails may leave open what it would have closed, such as a socket, and the process would wait for that until it is killed: then
 * nobody learns what has failed. It is ended once no test is left. One whose tests all pass closes what it opens.
 */
class EndOfFailed {
  #left = 0;
  #isFailed = false;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /** @param {import("node:test/reporters").TestEvent} event */
  note({ type }) {
    clearTimeout(this.#timer);
    if (type === "test:enqueue") this.#left++;
    if (type === "test:pass" || type === "test:fail") this.#left--;
    if (type === "test:fail") this.#isFailed = true;
    if (!this.#isFailed || this.#left > 0) return;
    this.#timer = setTimeout(() => {
      // Node's runner reports when the process has nothing more to do.
      process.emit("beforeExit", 1);
      setTimeout(() => process.exit(1), LEFT_OPEN_MS).unref();
    }, LEFT_OPEN_MS).unref();
  }
}

/** @type {FileCosts} */
const files = {};

/** Begins to measure one of several files of this process. @param {string} file its path @returns {() => void} ends it */
export function noteFile(file) {
  const before = costs();
  const beganMs = performance.now();
  return () => {
    const { own, programs, started } = costs();
    files[file] = {
      own: own - before.own,
      programs: programs - before.programs,
      started: Object.fromEntries(
        Object.entries(started)
          .map(([what, count]) => /** @type {const} */ ([what, count - (before.started[what] ?? 0)]))
          .filter(([, count]) => count > 0),
      ),
      wall: (performance.now() - beganMs) / 1000,
    };
  };
}

/** The support of the tests gives here what a failed test prints: see test/support/rig/evidence.ts. */
const EVIDENCE = Symbol.for("dns11.test.evidence");
/** The support of the tests counts here what it starts, by a name: see test/support/rig/started.ts. */
const STARTED = Symbol.for("dns11.test.started");
/** Fields of proc_pid_stat(5) behind the name of the program. */
const STAT = { user: 11, system: 12, usersOfOthers: 13, systemOfOthers: 14 };

/** @returns {Costs} */
function costs() {
  const text = readFileSync("/proc/self/stat", "utf8");
  const fields = text
    .slice(text.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const second = ticksOfSecond();
  const secondsOf = (/** @type {readonly number[]} */ ...at) =>
    at.reduce((sum, index) => sum + (fields[index] ?? 0), 0) / second;
  return {
    own: secondsOf(STAT.user, STAT.system),
    programs: secondsOf(STAT.usersOfOthers, STAT.systemOfOthers),
    started: { ...Reflect.get(globalThis, STARTED) },
  };
}

/** @type {number | undefined} */
let ticks;

function ticksOfSecond() {
  return (ticks ??= Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" })));
}

export function noCounts() {
  return /** @type {Counts} */ (Object.fromEntries(COUNTS.map((name) => [name, 0])));
}

/** @param {import("node:test/reporters").TestEvent} event @returns {event is Extract<typeof event, { type: "test:diagnostic" }>} */
function isClosing(event) {
  return event.type === "test:diagnostic" && event.data.nesting === 0;
}
