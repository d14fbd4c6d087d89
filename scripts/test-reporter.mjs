// @ts-check
/**
 * The report that a test file's process prints for scripts/test.mjs: its tests as Node's spec reporter writes them, and
 * after a marker what belongs at the end of the whole run, the counts and the failures in full.
 */
import { spec as Spec } from "node:test/reporters";

/** No test prints this. */
export const MARK = "\u001etest file: ";
/** Counts of Node's runner, in its order. */
export const COUNTS = /** @type {const} */ (["tests", "suites", "pass", "fail", "cancelled", "skipped", "todo"]);

/** @typedef {Record<typeof COUNTS[number], number>} Counts */
/** @typedef {{ readonly counts: Counts, readonly failures: string }} FileReport */

const COUNT = new RegExp(`^(${COUNTS.join("|")}|duration_ms) ([\\d.]+)$`);

/** @param {AsyncIterable<import("node:test/reporters").TestEvent>} events */
// oxlint-disable-next-line import/no-default-export -- Node requires it of a reporter.
export default async function* report(events) {
  // @ts-expect-error The types of Node 20 have it as a function; it is a stream to be made.
  const spec = new Spec().setEncoding("utf8");
  const counts = noCounts();
  for await (const event of events) {
    const [, name, value] = (isClosing(event) && COUNT.exec(event.data.message)) || [];
    if (name === undefined) spec.write(event);
    else if (name !== "duration_ms") counts[/** @type {keyof Counts} */ (name)] = Number(value);
    yield spec.read() ?? "";
  }
  // It prints the failures at the end.
  spec.end();
  yield `${MARK}${JSON.stringify({ counts, failures: spec.read() ?? "" })}\n`;
}

export function noCounts() {
  return /** @type {Counts} */ (Object.fromEntries(COUNTS.map((name) => [name, 0])));
}

/** @param {import("node:test/reporters").TestEvent} event @returns {event is Extract<typeof event, { type: "test:diagnostic" }>} */
function isClosing(event) {
  return event.type === "test:diagnostic" && event.data.nesting === 0;
}
