/**
 * HeldLease: a lease that a command holds in the foreground: until it is interrupted, its time is over, or dns11 ends. What it
 * has done is printed at the end.
 */
import { setTimeout as sleep } from "node:timers/promises";

import type { LeaseConnection } from "../../src/api/lease-connection.ts";
import type { RuleUseReport } from "../../src/api/lease.ts";
import { Fault } from "../../src/base/lib/fault.ts";
import { printable } from "../text/printable.ts";
import { abortOnSignal } from "../process/signals.ts";

/** Returns when it is interrupted, or after `forMs`; throws a Fault if dns11 has ended it. */
export async function holdLease(lease: LeaseConnection, forMs: number | undefined): Promise<void> {
  // The terminal may be closed: what was done or recorded must not be lost with it.
  const signal = abortOnSignal("SIGHUP");
  const interrupted = new Promise<"interrupted">((resolve) =>
    signal.addEventListener("abort", () => resolve("interrupted"), { once: true }),
  );
  const over = forMs === undefined ? [] : [sleep(forMs, "over" as const, { ref: true })];
  const why = await Promise.race([interrupted, lease.ended.then(() => "ended" as const), ...over]);
  if (why !== "ended") return;
  throw new Fault("LEASE_ENDED", "dns11 was stopped or replaced, so the rules are gone", {
    remedy: "Start dns11, and run the command again.",
  });
}

/** How long it is held. */
export function untilText(forMs: number | undefined): string {
  return forMs === undefined ? "Ctrl-C ends it" : `for ${forMs / 1000} s`;
}

export async function ruleReport(lease: LeaseConnection): Promise<readonly RuleUseReport[]> {
  const reply = await lease.send({ report: true });
  return "report" in reply ? reply.report.rules : [];
}

/** What a rule has done, as lines. */
export function useText({
  text,
  matched,
  applied,
  containers,
  refused = [],
  refusedOthers = 0,
}: RuleUseReport): string {
  const who = containers.filter((each) => each.applied > 0).map(({ container }) => container);
  const queries = `${applied} of ${matched} ${matched === 1 ? "query" : "queries"}`;
  const head =
    matched === 0
      ? `${text}: nobody asked`
      : `${text}: applied to ${queries}${who.length === 0 ? "" : ` by ${who.join(", ")}`}`;
  const lines = refused.map(
    ({ container, name, type, count }) => `  ${container}  ${name} ${type}${count === 1 ? "" : ` (${count} times)`}`,
  );
  return [head, ...lines, ...(refusedOthers > 0 ? [`  and ${refusedOthers} more`] : [])]
    .map((line) => `${printable(line)}\n`)
    .join("");
}
