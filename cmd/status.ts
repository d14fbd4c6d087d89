/**
 * dns11 status: the state of a running instance and of every container.
 */
import type { Command } from "commander";

import type { ContainerStatus, Status } from "../src/api/status.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./control-options.ts";
import { printable } from "./printable.ts";
import { table } from "./table.ts";

export function addStatus(program: Command): void {
  const command = program.command("status").description("Show the state of dns11 and of every container");
  addJsonOption(addControlOptions(command)).action(async (options: ControlOptions) => {
    const status = await (await clientFor(options)).status();
    process.stdout.write(options.json === true ? `${JSON.stringify(status)}\n` : statusText(status));
  });
}

function statusText(status: Status): string {
  const { engine, containers } = status;
  const attached = containers.filter(({ state }) => state === "attached").length;
  const readiness = status.isReady ? "ready" : "not ready yet";
  const connection = engine?.isConnected === false ? " (disconnected; the last known names are served)" : "";
  const where =
    engine === null ? "inside a KIND node, no engine" : `engine ${engine.version} at ${engine.address}${connection}`;
  const head =
    `dns11 ${status.version}: ${readiness}, pid ${status.pid}, since ${status.since}, mode: ${status.mode}\n` +
    `${where}, rule backend: ${ruleBackendText(status)}\n` +
    `settings: ${changedSettingsText(status)}${status.config === null ? "" : ` (file: ${status.config})`}\n` +
    `metrics: ${status.metrics ?? "only on the control socket"}; ${capabilityText(status)}\n` +
    `${keeperText(status)}\n` +
    recordsText(status) +
    `${attached} of ${containers.length} containers attached\n`;
  return containers.length === 0
    ? head
    : `${head}\n${table(["CONTAINER", "STATE", "PORTS", "VERIFIED", "UPSTREAMS", "WHY"], containers.map(row))}`;
}

/** The declared names, if there are any, and what is wrong with their files. */
function recordsText({ records: { names, problems } }: Status): string {
  if (names === 0 && problems.length === 0) return "";
  const lines = problems.map((each) => `  ${printable(each)}\n`).join("");
  return `declared names: ${names}${problems.length === 0 ? "" : "; mistakes in the records folder:"}\n${lines}`;
}

/** The backend of the redirect rules, with a note where the rules outlive a killed process. */
function ruleBackendText({ ruleBackend, keeper }: Status): string {
  const isRemoved = ruleBackend === "nft-owner" || (ruleBackend === "nft" && keeper.state !== "off");
  return isRemoved ? ruleBackend : `${ruleBackend} (rules stay if dns11 is killed; remove them with dns11 cleanup)`;
}

/** The process that removes the rules if this one is killed. */
function keeperText({ keeper: { state, pid, namespaces, restarts } }: Status): string {
  if (state === "off") return "keeper: off";
  const again = restarts === 0 ? "" : `, restarted ${restarts} ${restarts === 1 ? "time" : "times"}`;
  return `keeper: ${state}${pid === null ? "" : `, pid ${pid}`}, ${namespaces} namespaces${again}`;
}

/** Threads with different capabilities are listed separately; normally all have the same. */
function capabilityText({ capabilities }: Status): string {
  return `capabilities: ${capabilities
    .map(({ threads, permitted }) => `${permitted.join(", ") || "none"} (${threads} threads)`)
    .join("; ")}`;
}

/** The keys that are set, and where. */
function changedSettingsText({ settings }: Status): string {
  const changed = Object.entries(settings).filter(([, { source }]) => source !== "default");
  return changed.map(([key, { source }]) => `${key} (${source})`).join(", ") || "all defaults";
}

function row(container: ContainerStatus): string[] {
  const { name, state, ports, verified, upstreams, reason, warning, culprits } = container;
  return [
    name,
    state,
    ports === undefined ? "-" : `${ports.udp}/udp ${ports.tcp}/tcp`,
    verified === undefined ? "-" : verified.slice(11, 19),
    upstreams === undefined ? "-" : upstreams.join(" ") || "none",
    [reason, ...(culprits ?? []), warning].filter((text) => text !== undefined).join("; "),
  ];
}
