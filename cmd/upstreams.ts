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
import { type Display, displayOf, localTime } from "./text/terminal.ts";

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
    groupsOf(upstreams).map((each) => row(each, Date.now())),
    display,
  )}${lost === "" ? "" : "\n"}${lost}${note}`;
}

/** A server is another one in each container that has it of its own; those in one state are one row. */
function groupsOf(upstreams: readonly Upstream[]): Upstream[][] {
  const groups = new Map<string, Upstream[]>();
  for (const each of upstreams) {
    const { container, server, isBackup, isLooping } = each;
    const key = JSON.stringify([container === null, server, isBackup, isLooping, each.state]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [each]);
    else group.push(each);
  }
  return [...groups.values()];
}

function row(group: readonly Upstream[], nowMs: number): Cell[] {
  const [first, ...others] = group as [Upstream, ...Upstream[]];
  const { server, isBackup, container } = first;
  const sum = (key: keyof NonNullable<Upstream["counters"]>): string => {
    const counts = group.flatMap(({ counters }) => counters?.[key] ?? []);
    return counts.length === 0 ? "-" : String(counts.reduce((total, each) => total + each, 0));
  };
  const since = group.flatMap((each) => each.since ?? []).toSorted()[0];
  const edns = [...new Set(group.map((each) => each.edns))];
  return [
    `${server}${isBackup ? " (backup)" : ""}`,
    container === null ? "host" : others.length === 0 ? `"${container}"` : `${group.length} containers`,
    { text: stateText(group), colour: first.state === "down" ? "red" : undefined },
    since === undefined ? "-" : localTime(since, nowMs),
    rttText(group),
    ...(["queries", "answers", "useless", "unreachable"] as const).map(sum),
    edns.length > 1 ? "some" : edns[0] === null || edns[0] === undefined ? "-" : edns[0] ? "yes" : "no",
    usesOf(group).map(useText).join("; "),
  ];
}

function usesOf(group: readonly Upstream[]): UpstreamUse[] {
  const uses = new Map<string, UpstreamUse>();
  for (const use of group.flatMap((each) => each.uses)) {
    const before = uses.get(use.domain);
    uses.set(
      use.domain,
      before === undefined ? use : { ...before, containers: [...before.containers, ...use.containers].toSorted() },
    );
  }
  return [...uses.values()];
}

function stateText(group: readonly Upstream[]): string {
  const [first] = group;
  if (first?.isLooping === true) return "looping (forwards back to dns11)";
  const reasons = [...new Set(group.map(({ reason }) => reason ?? ""))].join("; ");
  return first?.state === "down" ? `down (${reasons})` : (first?.state ?? "");
}

/** Of several, the slowest. */
function rttText(group: readonly Upstream[]): string {
  const [slowest] = group.filter(({ rttMs }) => rttMs !== null).toSorted((a, b) => (b.rttMs ?? 0) - (a.rttMs ?? 0));
  if (slowest === undefined) return "-";
  return `${slowest.rttMs?.toFixed(1)} ±${(slowest.deviationMs ?? 0).toFixed(1)} ms`;
}

/** Up to this many containers are listed by name; more are counted. */
const NAMES_MAX = 3;

function useText({ domain, containers }: UpstreamUse): string {
  const list = containers.length > NAMES_MAX ? `${containers.length} containers` : containers.join(", ");
  return `${domain === "." ? "all names" : domain} (${list})`;
}
