/**
 * dns11 upstreams: every upstream server that containers use, with its health and counters.
 */
import type { Command } from "commander";

import type { Upstream, UpstreamReport, UpstreamUse } from "../src/api/upstreams.ts";
import { missingText } from "../src/base/model/server-text.ts";
import { type ProjectOptions, addProjectOption, namesOfProject } from "./options/container-argument.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./options/control-options.ts";
import { jsonLine, printableLines } from "./text/printable.ts";
import { type Cell, type Column, table } from "./text/table.ts";
import { type Display, displayOf } from "./text/terminal.ts";
import { localTime } from "./text/time.ts";

export function addUpstreams(program: Command): void {
  const command = program.command("upstreams").description("List upstream servers, their health and latency");
  addJsonOption(addControlOptions(addProjectOption(command))).action(
    async (options: ControlOptions & ProjectOptions) => {
      const client = await clientFor(options);
      const report = ofProject(await client.upstreams(), await namesOfProject(client, options));
      process.stdout.write(options.json === true ? jsonLine(report) : upstreamsText(report, displayOf(process.stdout)));
    },
  );
}

const HEAD: readonly Column[] = [
  { title: "SERVER", min: 16 },
  { title: "FROM", drop: 1 },
  { title: "STATE", min: 12 },
  { title: "SINCE", drop: 3 },
  { title: "RTT", drop: 2 },
  { title: "QUERIES", isNumber: true, drop: 4 },
  { title: "REPLIES", isNumber: true, drop: 6 },
  { title: "ERRORS", isNumber: true, drop: 5 },
  { title: "UNREACHABLE", isNumber: true, drop: 7 },
  { title: "EDNS", drop: 8 },
  { title: "FOR" },
];

/** Servers that containers of a project use. */
function ofProject(report: UpstreamReport, names: ReadonlySet<string> | undefined): UpstreamReport {
  if (names === undefined) return report;
  const ofNames = <T extends { readonly uses: readonly UpstreamUse[] }>(all: readonly T[]): T[] =>
    all.flatMap((each) => {
      const uses = each.uses.flatMap((use) => {
        const containers = use.containers.filter((name) => names.has(name));
        return containers.length === 0 ? [] : [{ ...use, containers }];
      });
      return uses.length === 0 ? [] : [{ ...each, uses }];
    });
  return { ...report, upstreams: ofNames(report.upstreams), missing: ofNames(report.missing ?? []) };
}

function upstreamsText({ tracksServers, upstreams, missing = [] }: UpstreamReport, display: Display): string {
  // Docker accepts any bytes in the name of a network.
  const lost = printableLines(missing.map((each) => `${missingText(each)}; for ${each.uses.map(useText).join("; ")}`));
  if (upstreams.length === 0) return `no served container has an upstream server\n${lost}`;
  const note = tracksServers
    ? ""
    : "\nfailover is off: servers are queried as Docker does, without health checks or counters\n";
  return `${table(
    HEAD,
    upstreams.map((each) => row(each, Date.now())),
    display,
  )}${lost === "" ? "" : "\n"}${lost}${note}`;
}

function row(upstream: Upstream, nowMs: number): Cell[] {
  const { server, isBackup, since, counters, edns } = upstream;
  return [
    `${server}${isBackup ? " (backup)" : ""}`,
    upstream.container === null ? "host" : `"${upstream.container}"`,
    { text: stateText(upstream), colour: upstream.state === "down" ? "red" : undefined },
    since === null ? "-" : localTime(since, nowMs),
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
