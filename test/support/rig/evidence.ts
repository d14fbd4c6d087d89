/**
 * Evidence: what a failed test prints beside its error, so that one run is enough to see why. Programs that a test starts leave
 * their logs here and clients their last replies, for the reporter of scripts/test.mjs. Rules exist only while the test runs, so
 * they are read when a wait times out.
 */

/** By this name the reporter finds it, which is not compiled with the tests. */
const EVIDENCE = Symbol.for("dns11.test.evidence");
const LOGS_MAX = 4;
const LOG_LINES = 40;
const REPLIES_MAX = 6;
const PLACES_MAX = 6;
const RULE_LINES = 80;
const LINE_CHARACTERS = 400;

interface Log {
  readonly title: string;
  readonly text: () => string;
  /** How much of it an earlier failure has printed. */
  printed: number;
}

type Place = { readonly title: string; readonly rules: () => Promise<string> };

const logs: Log[] = [];
const replies: string[] = [];
const places: Place[] = [];

/** The log of a program that has started. */
export function keepLog(title: string, text: () => string): void {
  keep(logs, { title, text, printed: 0 }, LOGS_MAX);
}

/** A reply that a client has got. */
export function keepReply(text: string): void {
  keep(replies, text, REPLIES_MAX);
}

/** A network namespace in which a test does something. */
export function keepPlace(title: string, rules: () => Promise<string>): void {
  keep(places, { title, rules }, PLACES_MAX);
}

function keep<T>(kept: T[], one: T, max: number): void {
  kept.push(one);
  if (kept.length > max) kept.shift();
}

/** The rules of the latest places that still exist, as far as they have any. */
export async function rulesNow(): Promise<string> {
  const found = await Promise.allSettled(
    places.map(async ({ title, rules }) => {
      const lines = (await rules()).trimEnd().split("\n").slice(0, RULE_LINES);
      return lines.join("") === "" ? "" : [`-- rules of ${title}`, ...lines].join("\n");
    }),
  );
  return found.flatMap((each) => (each.status === "fulfilled" && each.value !== "" ? [each.value] : [])).join("\n");
}

/** What is new since the last failure. */
function take(): string {
  const lines = replies.splice(0).flatMap((reply) => ["-- a reply", ...reply.trim().split("\n")]);
  for (const log of logs) {
    const text = log.text();
    const fresh = text.slice(log.printed).trimEnd().split("\n").slice(-LOG_LINES);
    log.printed = text.length;
    if (fresh.join("") !== "") lines.push(`-- log of ${log.title}`, ...fresh);
  }
  return lines
    .map((line) => (line.length > LINE_CHARACTERS ? `${line.slice(0, LINE_CHARACTERS)} ...` : line))
    .join("\n");
}

Reflect.set(globalThis, EVIDENCE, take);
