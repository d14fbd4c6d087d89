/**
 * dns11 ps: every running container with its state, upstreams and query counts.
 */
import type { Command } from "commander";

import type { ContainerStatus, Status } from "../src/api/status.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./control-options.ts";
import { table } from "./table.ts";

export function addPs(program: Command): void {
  const command = program.command("ps").description("List containers with state and query counts");
  addJsonOption(addControlOptions(command)).action(async (options: ControlOptions) => {
    const { containers, ruleBackend } = await (await clientFor(options)).status();
    const listed = containers.map((container) => ({ ...container, rules: rulesOf(container, ruleBackend) }));
    if (options.json === true) process.stdout.write(`${JSON.stringify(listed)}\n`);
    else process.stdout.write(listed.length === 0 ? "no running containers\n" : table(HEAD, listed.map(row)));
  });
}

type ListedContainer = ContainerStatus & { readonly rules: string | null };

const HEAD = [
  "CONTAINER",
  "STATE",
  "SINCE",
  "VERIFIED",
  "RULES",
  "PORTS",
  "QUERIES",
  "LOCAL",
  "CACHED",
  "FORWARDED",
  "FAILED",
  "UPSTREAMS",
  "WHY",
];

/** The backend of the redirect rules in the container; null where there are none. */
function rulesOf({ state }: ContainerStatus, ruleBackend: Status["ruleBackend"]): string | null {
  return state === "attached" || state === "verifying" ? ruleBackend : null;
}

function row({ name, isPaused, state, since, verified, rules, ports, ...rest }: ListedContainer): string[] {
  const { counters, upstreams, reason, culprits = [], warning, node } = rest;
  const count = (...keys: string[]): string =>
    counters === undefined ? "-" : String(keys.reduce((sum, key) => sum + (counters[key] ?? 0), 0));
  return [
    name,
    isPaused ? `${state} (paused)` : state,
    moment(since),
    moment(verified),
    rules ?? "-",
    ports === undefined ? "-" : `${ports.udp}/udp ${ports.tcp}/tcp`,
    count("queries"),
    count("local"),
    count("cached"),
    count("forwarded"),
    count("failed", "malformed"),
    upstreams === undefined ? "-" : upstreams.join(" ") || "none",
    [reason, ...culprits, warning, node === undefined ? undefined : "a KIND node: see dns11 kind status"]
      .filter((text) => text !== undefined)
      .join("; "),
  ];
}

/** The time of day if it is today, otherwise the date and time. */
function moment(iso: string | undefined): string {
  if (iso === undefined) return "-";
  const isToday = iso.slice(0, 10) === new Date().toISOString().slice(0, 10);
  return isToday ? iso.slice(11, 19) : iso.slice(0, 16).replace("T", " ");
}
