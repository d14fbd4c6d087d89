/**
 * dns11 status: what a running instance does in every container, or why it does nothing there.
 */
import type { Command } from "commander";

import type { ContainerStatus, Status } from "../src/api/status.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./control-options.ts";
import { table } from "./table.ts";

export function addStatus(program: Command): void {
  const command = program
    .command("status")
    .description("Show what a running dns11 does in every container, or why it does nothing there");
  addJsonOption(addControlOptions(command)).action(async (options: ControlOptions) => {
    const status = await (await clientFor(options)).status();
    process.stdout.write(options.json === true ? `${JSON.stringify(status)}\n` : statusText(status));
  });
}

function statusText(status: Status): string {
  const { engine, containers } = status;
  const served = containers.filter(({ state }) => state === "attached").length;
  const readiness = status.isReady ? "ready" : "not ready yet";
  const link = engine?.isConnected === false ? " (away; last-known names answer)" : "";
  const where =
    engine === null ? "in the node, without an engine" : `engine ${engine.version} at ${engine.address}${link}`;
  const head =
    `dns11 ${status.version}, process ${status.pid}, ${status.mode}, ${readiness}, since ${status.since}\n` +
    `${where}, rules ${ruleBackendText(status)}\n` +
    `settings ${status.config === null ? "" : `of ${status.config}, `}not as by default: ${changedSettingsText(status)}\n` +
    `metrics at ${status.metrics ?? "the control socket alone"}, ${capabilityText(status)}\n` +
    `${keeperText(status)}\n` +
    `${served} of ${containers.length} containers attached\n`;
  return containers.length === 0
    ? head
    : `${head}\n${table(["CONTAINER", "STATE", "PORTS", "VERIFIED", "UPSTREAMS", "WHY"], containers.map(row))}`;
}

/** By what they are held, and what that means when nobody is there any more. */
function ruleBackendText({ ruleBackend: tier, keeper }: Status): string {
  const isRemoved = tier === "nft-owner" || (tier === "nft" && keeper.state !== "off");
  return isRemoved ? tier : `${tier} (they stay when dns11 is killed: dns11 cleanup removes them)`;
}

/** Who takes the rules away when nobody else does. */
function keeperText({ keeper: { state, pid, namespaces, restarts } }: Status): string {
  if (state === "off") return "no keeper";
  const again = restarts === 0 ? "" : `, started again ${restarts} times`;
  return `keeper ${pid === null ? "" : `process ${pid}, `}${state}, ${namespaces} namespaces${again}`;
}

/** Threads that differ are told apart: there should be none. */
function capabilityText({ capabilities }: Status): string {
  return capabilities
    .map(({ threads, permitted }) => `${threads} threads with ${permitted.join(", ") || "no capability"}`)
    .join("; ");
}

/** The keys that somebody said anything under, and who. */
function changedSettingsText({ settings }: Status): string {
  const said = Object.entries(settings).filter(([, { source }]) => source !== "default");
  return said.map(([key, { source }]) => `${key} (${source})`).join(", ") || "nothing";
}

function row(container: ContainerStatus): string[] {
  const { name, state, ports, verified, upstreams, reason, warning, culprits } = container;
  return [
    name,
    state,
    ports === undefined ? "-" : `udp ${ports.udp}, tcp ${ports.tcp}`,
    verified === undefined ? "-" : verified.slice(11, 19),
    upstreams === undefined ? "-" : upstreams.join(" ") || "none",
    [reason, ...(culprits ?? []), warning].filter((text) => text !== undefined).join("; "),
  ];
}
