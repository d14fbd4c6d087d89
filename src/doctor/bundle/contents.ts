/**
 * Contents: the files of a bundle, which is what a bug report needs. Whatever cannot be read is left out, and the README in
 * the bundle says so.
 */
import { readFileSync } from "node:fs";

import { COMPOSE_PREFIX } from "../../base/model/compose.ts";
import type { FailuresReport } from "../../api/failures.ts";
import type { Status } from "../../api/status.ts";
import { ControlClient } from "../../api/control-client.ts";
import { locateControl } from "../../api/locate.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { type ContainerFact, isUserDefined } from "../../container/facts/fact.ts";
import { splitLabels } from "../../container/facts/labels.ts";
import { shortened } from "../../base/lib/text.ts";
import { proveNamespace } from "../../container/namespace/proof.ts";
import { tableListing } from "../../container/rules/installed-rules.ts";
import { type StoppedContainer, fromList } from "../../control/causes/known-container.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import { type MachineOptions, checkMachine } from "../machine-check.ts";
import type { Diagnosis } from "../problems.ts";
import { readContainerResolvConf } from "../container-resolv-conf.ts";
import { inspectContainers } from "../inspected-container.ts";
import { Redactor } from "./redactor.ts";
import type { ArchivedFile } from "./tar.ts";

interface ContainerTexts {
  readonly facts: readonly ContainerFact[];
  /** Causes name these, too. */
  readonly stopped: readonly StoppedContainer[];
  readonly resolvConfs: string;
  readonly rules: string;
}

const DIRECTIVE = /^\s*(?:nameserver|search|domain|options|sortlist)\s/;
const LINES_MAX = 20;
const LINE_CHARS_MAX = 500;
const CONTAINERS_MAX = 200;

type Context = NonNullable<Awaited<ReturnType<typeof checkMachine>>["context"]>;

export interface BundleOptions extends MachineOptions {
  /** What `dns11 version --json` prints. */
  readonly version: object;
  readonly diagnosis: Diagnosis;
  /** The diagnosis as text. */
  readonly diagnosisText: string;
  readonly isRedacted: boolean;
}

/** What a running dns11 reports. */
interface DaemonReports {
  readonly status?: Status;
  readonly failures?: FailuresReport;
  readonly counters?: unknown;
  readonly upstreams?: unknown;
  readonly cache?: unknown;
}

const FILE_CHARS_MAX = 1024 * 1024;
const FOLDER = "dns11-bundle";
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  "version.json": "version, commit, Node and kernel",
  "settings.json": "each setting, and whether a flag, the environment, the file or the default sets it",
  "status.json": "the state of dns11 and of each container",
  "counters.json": "the query counters of each container",
  "upstreams.json": "the upstream servers, and their state",
  "cache.json": "the use of the cache",
  "failures.json": "the names that fail, and why",
  "doctor.txt": "what dns11 doctor prints",
  "doctor.json": "all its findings",
  "resolv-conf.txt": "the directives of each container's resolv.conf",
  "rules.txt": "dns11's rules in each container, as nft lists them",
};

export async function bundleContents(options: BundleOptions): Promise<ArchivedFile[]> {
  const { diagnosis, isRedacted } = options;
  const missing: string[] = [];
  const reports = await daemonReports(options, missing);
  const texts = await readContainerTexts(options);
  const redactor = isRedacted ? redactorFor(reports, texts, diagnosis) : undefined;
  const { settings, ...status } = reports.status ?? {};
  const values: Record<string, unknown> = {
    "version.json": { ...options.version, kernel: kernelRelease() },
    "settings.json": settings,
    "status.json": reports.status === undefined ? undefined : status,
    "counters.json": reports.counters,
    "upstreams.json": reports.upstreams,
    "cache.json": reports.cache,
    "failures.json": reports.failures,
    "doctor.txt": options.diagnosisText,
    "doctor.json": diagnosis,
    "resolv-conf.txt": texts?.resolvConfs,
    "rules.txt": texts?.rules,
  };
  const files = Object.entries(values).flatMap(([name, value]): ArchivedFile[] => {
    if (value === undefined) return [];
    // The version is that of dns11 and of the machine, in which nothing is private.
    const shown = redactor === undefined || name === "version.json" ? value : redactor.value(value);
    return [{ path: `${FOLDER}/${name}`, text: bounded(typeof shown === "string" ? shown : jsonText(shown)) }];
  });
  return [{ path: `${FOLDER}/README.txt`, text: readme(files, missing, isRedacted) }, ...files];
}

async function daemonReports({ stateDir, hostFlag }: BundleOptions, missing: string[]): Promise<DaemonReports> {
  const reports: Record<string, unknown> = {};
  try {
    const client = new ControlClient(await locateControl(stateDir, hostFlag));
    for (const name of ["status", "failures", "counters", "upstreams", "cache"] as const) {
      try {
        reports[name] = await client[name]();
      } catch (error) {
        missing.push(`${name}: ${reasonOf(error)}`);
      }
    }
  } catch (error) {
    missing.push(`everything from a running dns11: ${reasonOf(error)}`);
  }
  return reports;
}

function redactorFor(
  { status, failures }: DaemonReports,
  texts: ContainerTexts | undefined,
  diagnosis: Diagnosis,
): Redactor {
  const redactor = new Redactor();
  const { facts = [], stopped = [] } = texts ?? {};
  const reported = status?.containers ?? [];
  const failing = failures?.failures ?? [];
  redactor.add("container", [
    ...facts.map(({ name }) => name),
    ...reported.map(({ name }) => name),
    ...diagnosis.containers.map(({ subject }) => subject),
    ...failing.map(({ container }) => container),
    ...stopped.map(({ name }) => name),
  ]);
  const labels = [...facts, ...stopped].map((each) => ({ ...each.imageLabels.labels, ...each.labels }));
  const labelled = (key: string): string[] => labels.flatMap((each) => each[`${COMPOSE_PREFIX}${key}`] ?? []);
  redactor.add("project", [...labelled("project"), ...failing.flatMap(({ project }) => project ?? [])]);
  const endpoints = facts.flatMap((fact) => fact.endpoints);
  redactor.add("service", [
    ...labelled("service"),
    ...failing.flatMap(({ service }) => service ?? []),
    ...endpoints.flatMap(({ names }) => names),
  ]);
  redactor.add("network", [
    ...endpoints.map(({ networkName }) => networkName),
    ...reported.flatMap(({ networks }) => networks),
    ...stopped.flatMap(({ networks }) => networks.map(({ name }) => name)).filter(isUserDefined),
  ]);
  redactor.add(
    "id",
    [...facts, ...reported, ...stopped].flatMap(({ id }) => [id, id.slice(0, 12)]),
  );
  redactor.addQueried(failing.flatMap(({ name }) => name ?? []));
  return redactor;
}

function readme(files: readonly ArchivedFile[], missing: readonly string[], isRedacted: boolean): string {
  const listed = files.map(({ path }) => {
    const name = path.slice(FOLDER.length + 1);
    return `${name.padEnd(16)}  ${DESCRIPTIONS[name] ?? ""}`;
  });
  const redaction = isRedacted
    ? "Replaced, the same everywhere: names of containers, networks, projects and services; names that were queried; public\n" +
      "addresses; directories. Private addresses are as they are. Read the files before you share them: a name that dns11 does\n" +
      "not know as one, such as a word in an error message, is not replaced."
    : "Nothing is replaced: the files have the names and addresses of your containers.";
  const parts = [
    "A report about dns11, made by `dns11 doctor --bundle`.",
    redaction,
    listed.join("\n"),
    ...(missing.length === 0 ? [] : [`Missing:\n${missing.map((line) => `- ${line}`).join("\n")}`]),
    "The log is not included; dns11 writes it to its standard error, with systemd: journalctl -u dns11 --since -1h",
  ];
  return `${parts.join("\n\n")}\n`;
}

function kernelRelease(): string {
  try {
    return readFileSync("/proc/sys/kernel/osrelease", "utf8").trim();
  } catch {
    return "unknown";
  }
}

function jsonText(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function bounded(text: string): string {
  return text.length <= FILE_CHARS_MAX ? text : `${text.slice(0, FILE_CHARS_MAX)}\n(cut here, of ${text.length})\n`;
}

/**
 * What a bug report needs from inside each container: the lines of its resolv.conf that the C library reads,
 * and dns11's rules.
 *
 * undefined if the containers cannot be read; the doctor's findings say why.
 */
async function readContainerTexts(options: MachineOptions): Promise<ContainerTexts | undefined> {
  const { context } = await checkMachine(options);
  if (context === undefined) return undefined;
  try {
    const inspected = await inspectContainers(context);
    const facts = inspected.map(({ fact }) => fact);
    const listed = await context.engine.notRunningContainers();
    const stopped = listed.map((each) => fromList(each, splitLabels(each.Labels ?? {}, undefined)));
    const resolvConfs: string[] = [];
    const rules: string[] = [];
    for (const { fact, namespaceKind } of inspected.slice(0, CONTAINERS_MAX)) {
      if (namespaceKind === "elsewhere") continue;
      const { text, origin } = readContainerResolvConf(fact, context);
      resolvConfs.push(`# ${fact.name} (${origin})\n${directivesIn(text)}`);
      const { id: containerId, sandboxKey, pid } = fact;
      rules.push(`# ${fact.name}\n${rulesIn({ containerId, sandboxKey, pid }, context)}`);
    }
    return { facts, stopped, resolvConfs: resolvConfs.join("\n"), rules: rules.join("\n") };
  } finally {
    context.close();
  }
}

function directivesIn(text: string | undefined): string {
  if (text === undefined) return "(cannot be read)\n";
  const lines = text.split("\n").filter((line) => DIRECTIVE.test(line));
  return lines
    .slice(0, LINES_MAX)
    .map((line) => `${shortened(line, LINE_CHARS_MAX)}\n`)
    .join("");
}

function rulesIn(claim: Parameters<typeof proveNamespace>[0], { host, runner }: Context): string {
  let fd = -1;
  try {
    fd = proveNamespace(claim, host, runner.homeId).fd;
    return tableListing(fd);
  } catch (error) {
    return `(${reasonOf(error)})\n`;
  } finally {
    closeQuietly(fd);
  }
}
