import { type Command, Option } from "commander";

import { addExamples } from "../../../cmd/help/help-layout.ts";
import {
  type ControlOptions,
  addControlOptions,
  addJsonOption,
  clientFor,
} from "../../../cmd/options/control-options.ts";
import { setExitCode } from "../../../cmd/process/exit-code.ts";
import { findingsTable } from "../../../cmd/text/doctor-text.ts";
import { inOwnProcess } from "../../../cmd/process/own-process.ts";
import { onThisPlatform } from "../../../cmd/modules/platform.ts";
import { readOrReject } from "../../../cmd/options/flags.ts";
import { jsonLine, printable, printableLines } from "../../../cmd/text/printable.ts";
import { table } from "../../../cmd/text/table.ts";
import type { ContainerStatus, Status } from "../../api/status.ts";
import type { NodeDiagnosis } from "./doctor.ts";
import { NODE_FILTER, type NodeFilter, startText } from "./feature.ts";

interface KindOptions extends ControlOptions {
  readonly inNode?: boolean;
  readonly kind?: readonly NodeFilter[];
}

export function add(program: Command): void {
  const kind = program
    .command("kind")
    .summary("Manage KIND (Kubernetes in Docker) nodes")
    .description("Manage KIND (Kubernetes in Docker) nodes from the host; dns11 run --kind auto serves their pods")
    .enablePositionalOptions()
    .helpCommand(false)
    .exitOverride();
  addExamples(
    kind,
    ["dns11 run --kind auto", "serve containers and the pods of KIND nodes"],
    ["dns11 kind status", "show the state of each node"],
    ["dns11 kind doctor", "query from a temporary pod in each node"],
  );
  const status = addVerb(kind, "status", "Show the state of each node");
  addExamples(status, ["dns11 kind status", "show the state of each node"]);
  addJsonOption(status).action(async (options: KindOptions) => await showStatus(options));
  const doctor = addVerb(
    kind,
    "doctor [node]",
    "Query from a temporary pod in one node or in all, and report problems",
  );
  addExamples(doctor, ["dns11 kind doctor kind-worker", "query from a temporary pod in one node"]);
  addJsonOption(doctor)
    .addOption(
      new Option("--kind <nodes>", "the containers that are nodes: auto, label=KEY[=VALUE] or name=PATTERN").argParser(
        (text, before: readonly NodeFilter[] | undefined) => [
          ...(before ?? []),
          readOrReject((word) => NODE_FILTER.read(word), text),
        ],
      ),
    )
    .option("--in-node", "diagnose the node that this command runs in; needs no engine")
    .action(inOwnProcess(async (node: string | undefined, options: KindOptions) => await diagnose(node, options)));
  const detach = addVerb(
    kind,
    "detach <node>",
    "Stop serving a node and undo all changes in it, until it or dns11 starts again, or it is attached",
  );
  addExamples(detach, ["dns11 kind detach kind-worker", "give a node back to Docker's resolver"]);
  detach.action(async (node: string, options: KindOptions) => await setDetached(node, options, true));
  const attach = addVerb(kind, "attach <node>", "Serve a detached node again");
  addExamples(attach, ["dns11 kind attach kind-worker", "serve it again"]);
  attach.action(async (node: string, options: KindOptions) => await setDetached(node, options, false));
}

function addVerb(kind: Command, name: string, description: string): Command {
  return addControlOptions(kind.command(name).description(description)).exitOverride();
}

async function showStatus(options: KindOptions): Promise<void> {
  const status = await (await clientFor(options)).status();
  const { containers } = status;
  const nodes = containers.filter(({ node, code }) => node !== undefined || code === "kind-detached");
  process.stdout.write(options.json === true ? jsonLine(nodes) : statusText(nodes, status));
}

function statusText(nodes: readonly ContainerStatus[], status: Status): string {
  if (nodes.length === 0) return printableLines(["no KIND nodes are served", startText(status)]);
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
  const { diagnoseInNode } = await onThisPlatform(async () => await import("./in-node.ts"));
  return [await diagnoseInNode()];
}

async function diagnoseEngineNodes(node: string | undefined, options: KindOptions): Promise<NodeDiagnosis[]> {
  const { diagnoseNodes } = await onThisPlatform(async () => await import("./doctor.ts"));
  const { host, kind } = options;
  // It is of use without a running dns11, too.
  const status = await clientFor(options)
    .then(async (client) => await client.status())
    .catch(() => undefined);
  return await diagnoseNodes({ hostFlag: host, node, filters: kind ?? [{ kind: "auto" }], status });
}

function reportText({ node, findings }: NodeDiagnosis): string {
  return `${printable(node)}\n${findingsTable(findings)}`;
}

async function setDetached(node: string, options: KindOptions, isDetached: boolean): Promise<void> {
  const client = await clientFor(options);
  const { name } = await (isDetached ? client.detachNode(node) : client.attachNode(node));
  process.stdout.write(
    printableLines([`${name} is ${isDetached ? "restored to its original state" : "served again"}`]),
  );
}
