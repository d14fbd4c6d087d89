/** Verdict: the state of everything as one sentence, for the top of the page and its title. */
import type { ContainersReport } from "../../../api/containers.ts";
import type { Status } from "../../../api/status.ts";
import type { UpstreamReport } from "../../../api/upstreams.ts";
import { type Failing, countsOf } from "./failing.ts";
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
  readonly failing: Failing;
  readonly status: Status | null;
  readonly containers: ContainersReport | null;
  readonly upstreams: UpstreamReport | null;
}

export function verdictOf({ scope, failing, status, containers, upstreams }: Known): Verdict {
  if (status === null && containers === null) return { level: "none", text: "Waiting for dns11", detail: "" };
  const bad = failing.now.filter(({ severity }) => severity === "bad");
  const warnings = failing.now.filter(({ severity }) => severity === "warn");
  const running = (containers?.containers ?? []).filter((each) => inScope(scope, each) && each.dns !== null);
  const unserved = running.filter(({ dns }) => dns === "failed" || dns === "quarantined");
  const detail = `${plural(running.length, "container")}, ${plural(queriesOf(status, scope), "query", "queries")} in the last minute`;
  if (bad.length > 0) return { level: "bad", text: failureText(bad.flatMap(({ pairs }) => pairs)), detail };
  if (unserved.length > 0) {
    const text = `${plural(unserved.length, "container")} cannot use dns11`;
    return { level: "bad", text, detail: "Docker's resolver answers there" };
  }
  const { down, total } = serversOf(upstreams);
  if (total > 0 && down === total) return { level: "bad", text: "No nameserver responds", detail };
  if (status?.engine?.isConnected === false) {
    return { level: "warn", text: "The engine does not respond", detail: "names are those of before" };
  }
  if (warnings.length > 0) {
    const { names } = countsOf(warnings.flatMap(({ pairs }) => pairs));
    const count = Math.max(names, 1);
    return { level: "warn", text: `${plural(count, "name")} ${count === 1 ? "needs" : "need"} attention`, detail };
  }
  if (status?.isReady === false) return { level: "warn", text: "dns11 is starting", detail };
  return { level: "ok", text: "All names of containers resolve", detail };
}

function failureText(pairs: Parameters<typeof countsOf>[0]): string {
  const { containers, names } = countsOf(pairs);
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
