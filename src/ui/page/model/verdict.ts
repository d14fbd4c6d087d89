/** Verdict: the state of everything as one sentence, for the top of the page and its title. */
import type { ContainersReport } from "../../../api/containers.ts";
import type { Status } from "../../../api/status.ts";
import type { UpstreamReport } from "../../../api/upstreams.ts";
import { type FailingEntry, countsOf } from "./failing.ts";
import { plural } from "./format.ts";
import { type Scope, inScope } from "./scope.ts";

export type Level = "ok" | "warn" | "bad" | "none";

export interface Verdict {
  readonly level: Level;
  readonly text: string;
  readonly detail: string;
}

export interface Known {
  readonly scope: Scope;
  /** What is not muted. */
  readonly shown: readonly FailingEntry[];
  /** How many entries are muted. */
  readonly muted: number;
  readonly areFailuresOff?: boolean;
  /** Of the page to dns11: without one, all else is from before. */
  readonly connection?: string;
  readonly status: Status | null;
  readonly containers: ContainersReport | null;
  readonly upstreams: UpstreamReport | null;
}

const LOST: ReadonlyMap<string, string> = new Map([
  ["no-daemon", "dns11 is not running"],
  ["no-server", "`dns11 ui` does not respond"],
  ["denied", "This page is not allowed to see dns11"],
]);

export function verdictOf({
  scope,
  shown,
  muted,
  areFailuresOff = false,
  connection = "live",
  status,
  containers,
  upstreams,
}: Known): Verdict {
  const lost = LOST.get(connection);
  if (lost !== undefined)
    return { level: "bad", text: lost, detail: containers === null ? "" : "what is shown is from before" };
  if (containers === null) return { level: "none", text: "Waiting for dns11", detail: "" };
  const running = containers.containers.filter((each) => inScope(scope, each) && each.dns !== null);
  const unserved = running.filter(({ dns }) => dns === "failed" || dns === "quarantined");
  const counts = `${plural(running.length, "container")}, ${plural(queriesOf(status, scope), "query", "queries")} in the last minute`;
  const detail = muted === 0 ? counts : `${plural(muted, "cause")} muted, ${counts}`;
  const needed = neededOf(shown);
  if (needed.some(({ severity }) => severity === "bad")) return { level: "bad", text: countText(needed), detail };
  if (unserved.length > 0) {
    const text = `${plural(unserved.length, "container")} cannot use dns11`;
    return { level: "bad", text, detail: "Docker's resolver answers there, unless a policy is enforced" };
  }
  const { down, total } = serversOf(upstreams);
  if (total > 0 && down === total) return { level: "bad", text: "No nameserver responds", detail };
  if (status?.engine?.silentMs !== undefined) {
    return { level: "bad", text: "dockerd hangs: it answers nothing", detail: "names are those of before" };
  }
  if (status?.engine?.isConnected === false) {
    return { level: "warn", text: "The engine does not respond", detail: "names are those of before" };
  }
  if (needed.length > 0) return { level: "warn", text: countText(needed), detail };
  if (status?.isReady === false) return { level: "warn", text: "dns11 is starting", detail };
  if (areFailuresOff) return { level: "none", text: "Failures are not recorded", detail: "queries.names is off" };
  return { level: "ok", text: `All ${muted === 0 ? "" : "other "}names of containers resolve`, detail };
}

/** What somebody should do something about. */
export function neededOf(entries: readonly FailingEntry[]): readonly FailingEntry[] {
  return entries.filter(({ severity }) => severity !== "info");
}

/** Such as `3 names fail in 2 containers, 1 name needs attention`: the same words wherever it is counted. */
export function countText(needed: readonly FailingEntry[]): string {
  const bad = needed.filter(({ severity }) => severity === "bad");
  const names = Math.max(1, countsOf(needed.filter(({ severity }) => severity === "warn")).names);
  return [
    ...(bad.length === 0 ? [] : [failureText(bad)]),
    ...(bad.length === needed.length ? [] : [`${plural(names, "name")} ${names === 1 ? "needs" : "need"} attention`]),
  ].join(", ");
}

function failureText(bad: readonly FailingEntry[]): string {
  const { containers, names } = countsOf(bad);
  const where = plural(containers, "container");
  if (names === 0) return `Queries of ${where} do not arrive`;
  return `${plural(names, "name")} ${names === 1 ? "fails" : "fail"} in ${where}`;
}

export function serversOf(report: UpstreamReport | null): { readonly down: number; readonly total: number } {
  const servers = (report?.upstreams ?? []).filter(({ from }) => from !== "docker");
  return { down: servers.filter(({ state }) => state === "down").length, total: servers.length };
}

function queriesOf(status: Status | null, scope: Scope): number {
  return (status?.containers ?? [])
    .filter((each) => inScope(scope, each))
    .reduce((sum, { recent }) => sum + (recent?.queries ?? 0), 0);
}
