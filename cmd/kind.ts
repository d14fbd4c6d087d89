/**
 * dns11 kind: serving pods in KIND nodes: state, diagnosis, detaching, and running inside a node.
 */
import { type Command, Option } from "commander";

import type { NodeDiagnosis } from "../src/doctor/kind/doctor.ts";
import type { ContainerStatus } from "../src/api/status.ts";
import type { RunSettings } from "../src/config/settings.ts";
import type { Log } from "../src/base/log/log.ts";
import { NODE_FILTER } from "../src/config/kinds.ts";
import type { NodeFilter } from "../src/base/model/kind-policy.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./control-options.ts";
import { exitUncheckedOnError, setExitCode } from "./doctor.ts";
import { findingsTable } from "./doctor-text.ts";
import { unknownCommand } from "./help.ts";
import { inOwnProcess } from "./own-process.ts";
import { doctorModules, hostModules } from "./platform.ts";
import { IN_NODE_FLAGS, addFlags } from "./flags.ts";
import { jsonLine, printable, printableLines } from "./printable.ts";
import { type SettingsOptions, serveUntilSignalled, settingsReader, stateDirOption } from "./run.ts";
import { table } from "./table.ts";

interface KindOptions extends ControlOptions {
  readonly inNode?: boolean;
  readonly kind?: readonly NodeFilter[];
}

interface InNodeOptions extends SettingsOptions {
  readonly inNode?: boolean;
  readonly once?: boolean;
  readonly undo?: boolean;
}

export function addKind(program: Command): void {
  const kind = program
    .command("kind")
    .summary("Serve pods in KIND (Kubernetes in Docker) nodes")
    .description(
      "Manage KIND nodes (Kubernetes in Docker) from the host with the commands below; or, inside a node, serve its pods: dns11 kind --in-node",
    )
    .enablePositionalOptions()
    .helpCommand(false)
    .allowExcessArguments()
    .option("--in-node", "serve the pods of the node that dns11 runs in, until stopped; needs no engine")
    .option(
      "--once",
      "with --in-node: install rules that redirect pods to Docker's resolver, and exit; no dns11 process remains (IPv4 only)",
    )
    .option("--replace", "with --in-node: take over from the running dns11; no query is lost")
    .option("--undo", "with --in-node: remove those rules, or the remains of a killed dns11")
    .addOption(new Option("--config <file>", "settings file; SIGHUP reloads it").env("DNS11_CONFIG"))
    .addOption(stateDirOption());
  addFlags(kind, IN_NODE_FLAGS);
  kind.action(async (options: InNodeOptions, command: Command) => {
    const [word] = command.args;
    if (word !== undefined) unknownCommand(command, word);
    await serveInNode(options, command);
  });
  addJsonOption(addVerb(kind, "status", "Show the state of each node")).action(
    async (options: KindOptions) => await showStatus(options),
  );
  addVerb(kind, "doctor [node]", "Query from a temporary pod in one node or in all, and report problems")
    .addOption(
      new Option("--kind <nodes>", "the containers that are nodes: auto, label=KEY[=VALUE] or name=PATTERN").argParser(
        (text, before: readonly NodeFilter[] | undefined) => [...(before ?? []), NODE_FILTER.read(text)],
      ),
    )
    .option("--in-node", "diagnose the node that dns11 runs in; needs no engine")
    .option("--json", "print JSON")
    .action(
      inOwnProcess(
        async (node: string | undefined, options: KindOptions) =>
          await exitUncheckedOnError(async () => await diagnose(node, options)),
      ),
    );
  addVerb(
    kind,
    "detach <node>",
    "Stop serving a node and undo all changes in it, until it restarts or is attached",
  ).action(async (node: string, options: KindOptions) => await setDetached(node, options, true));
  addVerb(kind, "attach <node>", "Serve a detached node again").action(
    async (node: string, options: KindOptions) => await setDetached(node, options, false),
  );
}

function addVerb(kind: Command, name: string, description: string): Command {
  return addControlOptions(kind.command(name).description(description)).exitOverride();
}

async function serveInNode(options: InNodeOptions, command: Command): Promise<void> {
  if (options.inNode !== true) command.help({ error: true });
  const { createLog, serveOnce, undoNodeSetup } = await hostModules();
  if (options.undo === true) return printLines(await undoNodeSetup(options.stateDir));
  const readAll = settingsReader(options);
  // The kernel answers containers only, so its program is not loaded.
  const readSettings = async (): Promise<RunSettings> => ({ ...(await readAll()), answers: "process" });
  const settings = await readSettings();
  const log = createLog(settings.logLevel, settings.logFormat);
  if (options.once !== true) return await serveNode(settings, log, readSettings);
  const { lines, isServed } = await serveOnce(settings, log);
  printLines(lines);
  const reports = isServed ? await diagnoseThisNode() : [];
  const wrong = reports.flatMap(({ findings }) => findings).filter(({ state }) => state !== "ok");
  printLines(wrong.map(({ what, detail }) => `${what}: ${detail}`));
}

async function serveNode(settings: RunSettings, log: Log, readSettings: () => Promise<RunSettings>): Promise<void> {
  const { findNode, Service } = await hostModules();
  await serveUntilSignalled(new Service(settings, log, readSettings, findNode));
}

function printLines(lines: readonly string[]): void {
  process.stdout.write(printableLines(lines));
}

async function showStatus(options: KindOptions): Promise<void> {
  const { containers } = await (await clientFor(options)).status();
  const nodes = containers.filter(({ node, code }) => node !== undefined || code === "kind-detached");
  process.stdout.write(options.json === true ? jsonLine(nodes) : statusText(nodes));
}

function statusText(nodes: readonly ContainerStatus[]): string {
  if (nodes.length === 0) return "no KIND nodes are served; dns11 run needs --kind to find them\n";
  const head = [
    "NODE",
    "STATE",
    "ADVERTISED",
    "SERVED AT",
    "FAMILIES",
    "CHANGED",
    "PROBED",
    "DROPPED",
    "RESOLV.CONF",
    "WHY",
  ];
  return table(
    head,
    nodes.map(({ name, state, node, reason }) => [
      name,
      state === "attached" ? (node?.state ?? "-") : state,
      node?.advertised.join(" ") || "-",
      node?.target.join(" ") || "-",
      node?.families.join(" ") || "-",
      timeOf(node?.lastChange),
      timeOf(node?.lastProbe),
      String(node?.dropped ?? "-"),
      node?.resolvConf ?? "-",
      [reason, ...(node?.reasons ?? []), ...(node?.warnings ?? [])].filter((text) => text !== undefined).join("; "),
    ]),
  );
}

function timeOf(iso: string | null | undefined): string {
  return iso?.slice(11, 19) ?? "-";
}

async function diagnose(node: string | undefined, options: KindOptions): Promise<void> {
  const { json } = options;
  const reports = options.inNode === true ? await diagnoseThisNode() : await diagnoseEngineNodes(node, options);
  process.stdout.write(
    json === true ? jsonLine(reports) : reports.map(reportText).join("\n") || "no KIND nodes found\n",
  );
  setExitCode(reports.flatMap(({ findings }) => findings));
}

async function diagnoseThisNode(): Promise<NodeDiagnosis[]> {
  const { diagnoseInNode } = await doctorModules();
  return await diagnoseInNode();
}

async function diagnoseEngineNodes(node: string | undefined, { host, kind }: KindOptions): Promise<NodeDiagnosis[]> {
  const { diagnoseNodes } = await doctorModules();
  return await diagnoseNodes({ hostFlag: host, node, filters: kind ?? [{ kind: "auto" }] });
}

function reportText({ node, findings }: NodeDiagnosis): string {
  return `${printable(node)}\n${findingsTable(findings)}`;
}

async function setDetached(node: string, options: KindOptions, isDetached: boolean): Promise<void> {
  const client = await clientFor(options);
  const { name } = await (isDetached ? client.detachNode(node) : client.attachNode(node));
  printLines([`${name} is ${isDetached ? "restored to its original state" : "served again"}`]);
}
