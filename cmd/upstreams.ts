/**
 * dns11 upstreams: every server that containers may ask, and how it does.
 */
import type { Command } from "commander";

import type { Upstream, UpstreamReport, UpstreamUse } from "../src/api/upstreams.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./control-options.ts";
import { table } from "./table.ts";

export function addUpstreams(program: Command): void {
  const command = program
    .command("upstreams")
    .description("Show every server that containers may ask: for which names, from where, and how it does");
  addJsonOption(addControlOptions(command)).action(async (options: ControlOptions) => {
    const report = await (await clientFor(options)).upstreams();
    process.stdout.write(options.json === true ? `${JSON.stringify(report)}\n` : upstreamsText(report));
  });
}

const HEAD = ["SERVER", "FROM", "STATE", "SINCE", "TAKES", "QUERIES", "ANSWERS", "USELESS", "UNREACHED", "EDNS", "FOR"];

function upstreamsText({ tracksServers: isRemembering, upstreams }: UpstreamReport): string {
  if (upstreams.length === 0) return "no container that is served may ask anybody\n";
  const note = isRemembering
    ? ""
    : "\nservers are asked as Docker asks them, and nothing is remembered of them (no failover)\n";
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
  if (isLooping === true) return "looping (leads back to dns11)";
  return state === "down" ? `down (${reason ?? ""})` : state;
}

function rttText({ rttMs, deviationMs }: Upstream): string {
  return rttMs === null ? "-" : `${rttMs.toFixed(1)} ±${(deviationMs ?? 0).toFixed(1)} ms`;
}

/** Some by name, many by number. */
const NAMES_MAX = 3;

function useText({ domain, containers }: UpstreamUse): string {
  const who = containers.length > NAMES_MAX ? `${containers.length} containers` : containers.join(", ");
  return `${domain === "." ? "every name" : domain} of ${who}`;
}
