/**
 * dns11 status: the health of dns11 in a few lines, or the state of one container.
 */
import type { Command } from "commander";

import type { FeatureReport } from "../src/features/contract.ts";
import { loadReports } from "../src/features/load.ts";
import { type FailuresReport, isFailing } from "../src/api/failures.ts";
import { failingName, problemsOf } from "../src/api/problems.ts";
import type { ContainerStatus, RecentQueries, Status } from "../src/api/status.ts";
import type { Upstream, UpstreamReport } from "../src/api/upstreams.ts";
import type { ControlClient } from "../src/api/control-client.ts";
import type { AnsweredByReport } from "../src/base/model/answered-by.ts";
import { codeOf } from "../src/base/lib/fault.ts";
import { containersCalled, inProject } from "../src/base/model/container-choice.ts";
import { type ProjectOptions, addProjectOption } from "./options/container-argument.ts";
import {
  type ControlOptions,
  type Format,
  addControlOptions,
  addFormatOption,
  clientFor,
} from "./options/control-options.ts";
import { counted } from "../src/base/lib/text.ts";
import { type Line, lines } from "./text/wrap.ts";
import { jsonLine } from "./text/printable.ts";
import { whyOf } from "./ps.ts";
import { type Display, PLAIN, displayOf, age, ago, localTime } from "./text/terminal.ts";
import { type WatchOptions, addWatchOption, printOrWatch } from "./screen/watch.ts";

interface StatusOptions extends ControlOptions, ProjectOptions, WatchOptions {
  readonly output?: Format;
}

/** What `status` shows. */
interface Health {
  readonly status: Status;
  readonly upstreams: UpstreamReport;
  /** undefined if failures are not recorded. */
  readonly failures: FailuresReport | undefined;
  readonly ofFeatures?: readonly Line[];
}

export function addStatus(program: Command): void {
  const command = program
    .command("status [container]")
    .summary("Show the health of dns11")
    .description("Show the health of dns11: containers, nameservers, queries; or the state of one container");
  addWatchOption(addFormatOption(addControlOptions(addProjectOption(command)))).action(
    async (container: string | undefined, options: StatusOptions) => {
      const client = await clientFor(options);
      await printOrWatch(options, async () => await statusOutput(client, container, options));
    },
  );
}

async function statusOutput(
  client: ControlClient,
  word: string | undefined,
  { project, json, output }: StatusOptions,
): Promise<string> {
  const whole = await client.status();
  const containers =
    word === undefined ? inProject(whole.containers, project) : containersCalled(whole.containers, word, project);
  const status = { ...whole, containers };
  if (json === true) return jsonLine(status);
  const display = displayOf(process.stdout);
  const reports = await loadReports();
  if (word !== undefined) return containers.map((each) => containerText(each, { display, reports })).join("\n");
  const upstreams = await client.upstreams();
  const failures = await failuresOf(client, project);
  const ofFeatures = reports.flatMap((each) => each.statusLines?.(status) ?? []);
  return statusText({ status, upstreams, failures, ofFeatures }, { isWide: output === "wide", display });
}

async function failuresOf(client: ControlClient, project: string | undefined): Promise<FailuresReport | undefined> {
  try {
    return await client.failures(project === undefined ? {} : { project });
  } catch (error) {
    if (codeOf(error) === "QUERIES_OFF") return undefined;
    throw error;
  }
}

interface StatusView {
  readonly isWide?: boolean;
  readonly display?: Display;
  readonly nowMs?: number;
}

interface ContainerView extends Omit<StatusView, "isWide"> {
  readonly reports?: readonly FeatureReport[];
}

export function statusText(
  health: Health,
  { isWide = false, display = PLAIN, nowMs = Date.now() }: StatusView = {},
): string {
  const { status } = health;
  const shown: Line[] = [
    processLine(status, nowMs),
    engineLine(status),
    containersLine(status),
    nameserversLine(health.upstreams, nowMs),
    queriesLine(status),
    failingLine(health.failures),
    { label: "rules", text: rulesText(status) },
    { label: "settings", text: settingsText(status) },
    ...(health.ofFeatures ?? []),
  ];
  return lines(isWide ? [...shown, ...wideLines(status)] : shown, display);
}

function processLine({ version, isReady, since, pid, memoryBytes, mode }: Status, nowMs: number): Line {
  const memory = `${Math.round(memoryBytes / 2 ** 20)} MiB`;
  const text = `${version}, ${isReady ? "ready" : "not ready yet"}, up ${age(since, nowMs)}, pid ${pid}, ${memory}, mode: ${mode}`;
  return { label: "dns11", text, colour: isReady ? undefined : "yellow" };
}

function engineLine({ engine }: Status): Line {
  if (engine === null) return { label: "engine", text: "none: inside a KIND node" };
  const text = `Docker ${engine.version} at ${engine.address}`;
  if (engine.silentMs !== undefined) {
    const silent = `${text}: dockerd hangs, no answer for ${Math.round(engine.silentMs / 1000)} s; the last known names are served`;
    return { label: "engine", text: silent, colour: "red" };
  }
  if (engine.isConnected) return { label: "engine", text };
  return { label: "engine", text: `${text}: disconnected; the last known names are served`, colour: "red" };
}

const NAMES_MAX = 3;

function containersLine({ containers }: Status): Line {
  const inState = (...states: ContainerStatus["state"][]): ContainerStatus[] =>
    containers.filter(({ state, isServedWith }) => isServedWith !== true && states.includes(state));
  const served = [...inState("attached", "verifying"), ...containers.filter((each) => each.isServedWith === true)];
  const broken = inState("failed", "quarantined");
  const [opening, skipped] = [inState("opening").length, inState("skipped").length];
  const parts = [
    `${served.length} of ${containers.length} served`,
    ...(opening === 0 ? [] : [`${opening} being attached`]),
    ...(skipped === 0 ? [] : [`${skipped} skipped`]),
    ...(broken.length === 0 ? [] : [`${broken.length} failed (${someNames(broken)}): dns11 ps`]),
  ];
  return { label: "containers", text: parts.join(", "), colour: broken.length > 0 ? "red" : undefined };
}

function someNames(containers: readonly ContainerStatus[]): string {
  const names = containers.slice(0, NAMES_MAX).map(({ name }) => name);
  return containers.length > NAMES_MAX ? `${names.join(", ")} ...` : names.join(", ");
}

/** An outage is one line: since when none is up. */
function nameserversLine({ tracksServers, upstreams }: UpstreamReport, nowMs: number): Line {
  const label = "nameservers";
  const servers = upstreams.filter(({ isBackup }) => !isBackup);
  if (servers.length === 0) return { label, text: "none: only container names resolve", colour: "yellow" };
  if (!tracksServers) return { label, text: `${servers.length}; their state is unknown, because failover is off` };
  const down = servers.filter(({ state }) => state === "down");
  const up = `${servers.length - down.length} of ${servers.length} up`;
  if (down.length === 0) return { label, text: up };
  if (down.length === servers.length) {
    const since =
      down
        .map((each) => each.since ?? "")
        .toSorted()
        .at(-1) ?? "";
    return { label, text: `${up}${sinceText(since, nowMs)}: dns11 upstreams`, colour: "red" };
  }
  const list = down.slice(0, NAMES_MAX).map((each) => serverText(each, nowMs));
  const more = down.length > NAMES_MAX ? ` and ${down.length - NAMES_MAX} more` : "";
  return { label, text: `${up}; down: ${list.join(", ")}${more}`, colour: "yellow" };
}

function serverText({ server, container, since }: Upstream, nowMs: number): string {
  return `${server}${container === null ? "" : ` of ${container}`}${sinceText(since ?? "", nowMs)}`;
}

function sinceText(since: string, nowMs: number): string {
  return since === "" ? "" : ` since ${localTime(since, nowMs)}`;
}

function queriesLine({ containers }: Status): Line {
  const all = containers.flatMap(({ recent }) => recent ?? []);
  const sum = (key: keyof RecentQueries): number => all.reduce((total, each) => total + each[key], 0);
  return {
    label: "queries",
    text: recentText({
      queries: sum("queries"),
      nxdomain: sum("nxdomain"),
      errors: sum("errors"),
      failures: sum("failures"),
    }),
  };
}

/** Each query is in one of the counts: a name of a container that does not exist has failed, one of the outside world has not. */
function recentText({ queries, nxdomain, errors, failures }: RecentQueries): string {
  const names = Math.min(nxdomain, Math.max(0, failures - errors));
  const kinds = [...(names > 0 ? [`${names} NXDOMAIN`] : []), ...(errors > 0 ? [counted(errors, "error")] : [])];
  const failed = kinds.length === 0 ? "none failed" : `${names + errors} failed (${kinds.join(", ")})`;
  const others = nxdomain - names;
  return `${queries} in the last minute, ${failed}${others > 0 ? `, ${others} NXDOMAIN of the outside world` : ""}`;
}

function failingLine(report: FailuresReport | undefined): Line {
  const label = "failing";
  if (report === undefined) return { label, text: "unknown, because queries.names is off" };
  const current = report.failures.filter(isFailing);
  // As on the page, the same name counts once for each cause: "db" of two projects are two names.
  const names = problemsOf(current.map((each) => failingName(each))).reduce((sum, each) => sum + each.names.length, 0);
  const containers = new Set(current.map(({ containerId }) => containerId)).size;
  const [misleading, unwatched] = [report.misleading.length, report.unwatched.length];
  if (names + misleading + unwatched === 0) return { label, text: "no container's name" };
  const parts = [
    ...(names === 0 ? [] : [`${counted(names, "name")} in ${counted(containers, "container")}`]),
    ...(misleading === 0 ? [] : [`${counted(misleading, "name")} misleading`]),
    ...(unwatched === 0 ? [] : [`${counted(unwatched, "container")} not seen`]),
  ];
  return { label, text: `${parts.join(", ")}: dns11 failures`, colour: "red" };
}

/** The backend of the redirect rules, and the process that removes them if this one is killed. */
function rulesText({ ruleBackend, answers, keeper: { state, pid, namespaces, restarts } }: Status): string {
  const isRemoved = ruleBackend === "nft-owner" || (ruleBackend === "nft" && state !== "off");
  const kept = isRemoved ? ruleBackend : `${ruleBackend} (they stay if dns11 is killed; dns11 cleanup removes them)`;
  const rules = answers === undefined ? kept : `${kept}; answers: ${answersText(answers)}`;
  if (state === "off") return `${rules}; keeper: off`;
  const again = restarts === 0 ? "" : `, restarted ${restarts} ${restarts === 1 ? "time" : "times"}`;
  return `${rules}; keeper: ${state}${pid === null ? "" : `, pid ${pid}`}, ${counted(namespaces, "namespace")}${again}`;
}

/** Who answers plain queries for local names, and why it is not the kernel. */
function answersText({ by, reason }: AnsweredByReport): string {
  return reason === undefined ? by : `${by} (${reason})`;
}

/** The keys that are set, and where. */
function settingsText({ settings, config, afterRestart = [] }: Status): string {
  const waiting = new Set(afterRestart.map((line) => line.slice(0, line.indexOf(":"))));
  const changed = Object.entries(settings).filter(([key, { source }]) => source !== "default" || waiting.has(key));
  const keys =
    changed.map(([key, { source }]) => `${key} (${source}${waiting.has(key) ? ", after a restart" : ""})`).join(", ") ||
    "all defaults";
  return config === null ? keys : `${keys} (file: ${config})`;
}

function wideLines({ metrics, capabilities }: Status): Line[] {
  // Threads with different capabilities are listed separately; normally all have the same.
  const held = capabilities.map(({ threads, permitted }) => `${permitted.join(", ") || "none"} (${threads} threads)`);
  return [
    { label: "metrics", text: metrics ?? "only on the control socket" },
    { label: "capabilities", text: held.join("; ") },
  ];
}

export function containerText(
  container: ContainerStatus,
  { display = PLAIN, nowMs = Date.now(), reports = [] }: ContainerView = {},
): string {
  const { id, name, project, service, state, isPaused, answers, networks, upstreams, recent, ports, since, verified } =
    container;
  const why = whyOf(container, reports);
  const when = since === undefined ? "" : ` for ${age(since, nowMs)}`;
  const checked = verified === undefined ? "" : `, verified ${ago(verified, nowMs)}`;
  const place = project === null ? [] : [{ label: "compose", text: `project ${project}, service ${service ?? "-"}` }];
  const last = recent === undefined ? "-" : recentText(recent);
  return lines(
    [
      { label: "container", text: `${name} (${id.slice(0, 12)})` },
      ...place,
      {
        label: "state",
        text: `${state}${isPaused ? " (paused)" : ""}${when}${checked}`,
        colour: state === "attached" ? "green" : state === "skipped" ? "dim" : "red",
      },
      ...(why === "" ? [] : [{ label: "why", text: why }]),
      ...reports.flatMap((each) => each.containerLines?.(container) ?? []),
      { label: "networks", text: networks.join(", ") || "none" },
      { label: "upstreams", text: upstreams === undefined ? "-" : upstreams.join(" ") || "none" },
      { label: "queries", text: last },
      ...(answers === undefined ? [] : [{ label: "answers", text: answersText(answers) }]),
      ...(ports === undefined ? [] : [{ label: "ports", text: `${ports.udp}/udp ${ports.tcp}/tcp` }]),
    ],
    display,
  );
}
