/**
 * dns11 upstreams: every upstream server that containers use, with its health and counters.
 */
import type { Command } from "commander";

import type { Upstream, UpstreamReport, UpstreamUse } from "../src/api/upstreams.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./control-options.ts";
import { table } from "./table.ts";

export function addUpstreams(program: Command): void {
  const command = program.command("upstreams").description("List upstream servers, their health and latency");
  addJsonOption(addControlOptions(command)).action(async (options: ControlOptions) => {
    const report = await (await clientFor(options)).upstreams();
    process.stdout.write(options.json === true ? `${JSON.stringify(report)}\n` : upstreamsText(report));
  });
}

const HEAD = ["SERVER", "FROM", "STATE", "SINCE", "RTT", "QUERIES", "REPLIES", "ERRORS", "UNREACHABLE", "EDNS", "FOR"];

function upstreamsText({ tracksServers, upstreams }: UpstreamReport): string {
  if (upstreams.length === 0) return "no served container has an upstream server\n";
  const note = tracksServers
    ? ""
    : "\nfailover is off: servers are queried as Docker does, without health checks or counters\n";
  return `${table(HEAD, upstreams.map(row))}${note}`;
}

function row(upstream: Upstream): string[] {
  const { server, isBackup, since, counters, edns } = upstream;
  return [
    `${server}${isBackup ? " (backup)" : ""}`,
    upstream.container === null ? "host" : `"${upstream.container}"`,
    stateText(upstream),
    since === null ? "-" : since.slice(11, 19),
    rttText(upstream),
    ...[counters?.queries, counters?.answers, counters?.useless, counters?.unreachable].map((count) =>
      String(count ?? "-"),
    ),
    edns === null ? "-" : edns ? "yes" : "no",
    upstream.uses.map(useText).join("; "),
  ];
}

function stateText({ state, reason, isLooping }: Upstream): string {
  if (isLooping === true) return "looping (forwards back to dns11)";
  return state === "down" ? `down (${reason ?? ""})` : state;
}

function rttText({ rttMs, deviationMs }: Upstream): string {
  return rttMs === null ? "-" : `${rttMs.toFixed(1)} ±${(deviationMs ?? 0).toFixed(1)} ms`;
}

/** Up to this many containers are listed by name; more are counted. */
const NAMES_MAX = 3;

function useText({ domain, containers }: UpstreamUse): string {
  const list = containers.length > NAMES_MAX ? `${containers.length} containers` : containers.join(", ");
  return `${domain === "." ? "all names" : domain} (${list})`;
}
