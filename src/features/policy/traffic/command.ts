import { type Command, InvalidArgumentError } from "commander";

import { addExamples } from "../../../../cmd/help/help-layout.ts";
import {
  type ProjectOptions,
  addProjectOption,
  containersRequest,
  note,
} from "../../../../cmd/options/container-argument.ts";
import {
  type ControlOptions,
  addControlOptions,
  addJsonOption,
  clientFor,
} from "../../../../cmd/options/control-options.ts";
import { readDuration } from "../../../../cmd/options/name-options.ts";
import { EXIT } from "../../../../cmd/process/exit-code.ts";
import { abortOnSignal, stopped } from "../../../../cmd/process/own-process.ts";
import { jsonLine, printableLines } from "../../../../cmd/text/printable.ts";
import { table } from "../../../../cmd/text/table.ts";
import { displayOf } from "../../../../cmd/text/terminal.ts";
import type { ContainersRequest, ControlClient } from "../../../api/control-client.ts";
import { Fault, reasonWithRemedy } from "../../../base/lib/fault.ts";
import { mergeSettings } from "../../../config/merge-settings.ts";
import { chosenBy } from "../book/assignment.ts";
import { isPolicyName } from "../model/policy.ts";
import { type LearnedFor, learnedPolicy } from "./learned-policy.ts";
import { type JudgedContainer, Traffic, judgedTraffic } from "./traffic.ts";
import { policiesOf } from "../feature.ts";

/** A command of `policy`, which is there already. */
function subcommand(program: Command, name: string): Command {
  const policy = program.commands.find((each) => each.name() === "policy");
  if (policy === undefined) throw new Error("policy comes first in the list of commands");
  return policy.command(name);
}

interface LearnOptions extends ControlOptions, ProjectOptions {
  readonly for?: number;
  readonly wildcards?: boolean;
}

const WAIT_MIN_MS = 1_000;

export function addLearn(program: Command): void {
  const learn = subcommand(program, "learn")
    .description(
      "Print a settings file with a policy that allows what containers asked and connected to; it needs egress: true",
    )
    .argument("[container]", "its name, Compose service or ID; without one, --project")
    .option("--for <time>", "watch for so long, such as 10m, until Ctrl-C; without it, use what is recorded", readWait)
    .option("--wildcards", "write a wildcard for five names or more right below one domain of one owner")
    .exitOverride();
  addExamples(
    learn,
    ["dns11 policy learn --project shop --for 10m", "watch a Compose project, then print its policy"],
    ["dns11 policy learn web", "from what is recorded of one container"],
  );
  addControlOptions(addProjectOption(learn)).action(
    async (container: string | undefined, options: LearnOptions) => await showLearned(container, options),
  );
}

function readWait(text: string): number {
  const ms = readDuration(text);
  if (ms < WAIT_MIN_MS) throw new InvalidArgumentError("Use a time of at least a second, such as 10m.");
  return ms;
}

async function showLearned(word: string | undefined, options: LearnOptions): Promise<void> {
  if (word === undefined && options.project === undefined)
    throw new Fault("USAGE", "A policy is learned from one project or one container", {
      remedy: "Name it: `dns11 policy learn --project shop`, or `dns11 policy learn web`.",
    });
  const client = await clientFor(options);
  const chosen = await containersRequest(client, word, options);
  // First of all: without it nothing can be learned.
  const before = await client.egress(chosen);
  if (!before.hasNames)
    throw new Fault("QUERIES_OFF", "Names are not kept, so no policy can be learned", {
      remedy: "Set queries.names to full.",
    });
  const whom = await learnedFor(client, chosen, options);
  const traffic =
    options.for === undefined ? await recordedTraffic(client, chosen) : await watched(client, chosen, options.for);
  const { text, rules, notes } = learnedPolicy(
    traffic,
    { ...whom, wildcards: options.wildcards === true },
    new Date().toISOString(),
  );
  for (const each of notes) note(each);
  if (traffic.containers.size === 0) note("no container asked or connected to anything");
  note(`${rules} rules; check them with: dns11 policy diff FILE`);
  process.stdout.write(text);
}

async function learnedFor(
  client: ControlClient,
  chosen: ContainersRequest,
  { project }: ProjectOptions,
): Promise<LearnedFor> {
  if (chosen.service !== undefined) return { name: policyName(chosen.service), scope: `service=${chosen.service}` };
  if (chosen.container === undefined) return { name: policyName(project ?? ""), scope: `project=${project}` };
  const { containers } = await client.status();
  const found = containers.find(({ id, name }) => id === chosen.container || name === chosen.container);
  const service = found?.service ?? undefined;
  if (service !== undefined) return { name: policyName(service), scope: `service=${service}` };
  return { name: policyName(found?.name ?? chosen.container), scope: undefined };
}

function policyName(text: string): string {
  const name = text.toLowerCase().replaceAll(/[^a-z0-9_.-]/g, "-");
  return isPolicyName(name) ? name : "learned";
}

/** What happens from now on, for so long or until somebody has seen enough. */
async function watched(client: ControlClient, chosen: ContainersRequest, forMs: number): Promise<Traffic> {
  const traffic = new Traffic();
  const sinceMs = Date.now();
  const end = new AbortController();
  const { signal } = end;
  const timer = setTimeout(() => end.abort(), forMs);
  abortOnSignal("SIGHUP").addEventListener("abort", () => end.abort(), { once: true });
  note("learning; Ctrl-C ends it with what it has seen");
  let missed = 0;
  for await (const each of client.follow(chosen, signal)) {
    if ("missed" in each) missed += each.missed;
    else traffic.addQuery(each);
  }
  clearTimeout(timer);
  if (!signal.aborted) {
    note(`${reasonWithRemedy(stopped())} What was seen until then follows.`);
    process.exitCode = EXIT.failure;
  }
  if (missed > 0) note(`${missed} queries came too fast to be seen`);
  // It may be gone, and those that it has recorded with it.
  const connections = await client.egress(chosen).catch(() => undefined);
  if (connections !== undefined) traffic.addConnections(connections, sinceMs);
  return traffic;
}

interface DiffOptions extends ControlOptions, ProjectOptions {}

export function addDiff(program: Command): void {
  const diff = subcommand(program, "diff")
    .description(
      "Show what the policies of a file would have refused of the recorded traffic: exit code 0 if nothing, 1 if something",
    )
    .argument("<file>", "a settings file")
    .argument("[container]", "its name, Compose service or ID; all containers if omitted")
    .exitOverride();
  addExamples(diff, ["dns11 policy diff policy.yaml --project shop", "what these policies would have refused"]);
  addJsonOption(addControlOptions(addProjectOption(diff))).action(
    async (file: string, container: string | undefined, options: DiffOptions) =>
      await showDiff(file, container, options),
  );
}

interface DiffReport {
  readonly file: string;
  /** Containers that the policies of the file are for. */
  readonly judged: readonly string[];
  readonly refusals: JudgedContainer["refusals"];
  readonly passing: number;
}

async function showDiff(file: string, word: string | undefined, options: DiffOptions): Promise<void> {
  const { readSettingsFile } = await import("../../../config/file/settings-file.ts");
  const policies = policiesOf(mergeSettings([await readSettingsFile(file)]));
  const client = await clientFor(options);
  const chosen = await containersRequest(client, word, options);
  const traffic = await recordedTraffic(client, chosen);
  const { containers } = await client.containers();
  const now = await client.policies();
  const report: { -readonly [K in keyof DiffReport]: DiffReport[K] } = { file, judged: [], refusals: [], passing: 0 };
  for (const each of traffic.containers.values()) {
    const known = containers.find(({ name }) => name === each.container);
    if (known === undefined) continue;
    // Labels are not listed: whoever has a policy by its label now keeps it.
    const byLabel = new Set(
      now.containers
        .filter(({ container }) => container === each.container)
        .flatMap((one) => one.policies.filter(({ by }) => by.startsWith("label ")).map(({ name }) => name)),
    );
    const subject = {
      ...known,
      ownerId: known.id,
      networks: known.networks.map(({ network }) => network),
      label: () => undefined,
    };
    const own = policies.filter((policy) => chosenBy(subject, policy) !== undefined || byLabel.has(policy.name));
    if (own.length === 0) continue;
    const { refusals, passing } = judgedTraffic(each, own);
    report.judged = [...report.judged, each.container];
    report.refusals = [...report.refusals, ...refusals];
    report.passing += passing;
  }
  process.stdout.write(options.json === true ? jsonLine(report) : diffText(report));
  if (report.refusals.length > 0) process.exitCode = EXIT.failure;
}

function diffText({ file, judged, refusals, passing }: DiffReport): string {
  if (judged.length === 0) return printableLines([`no policy of ${file} is for a container with recorded traffic`]);
  const rows = refusals.map(({ container, what, because }) => [container, what, because]);
  const head = ["CONTAINER", "WOULD BE REFUSED", "BECAUSE"];
  const verdict = `nothing that was recorded of ${judged.join(", ")} would be refused`;
  const pass = `${passing} connections that no rule allows would pass: the policies filter only names`;
  return [
    refusals.length === 0 ? printableLines([verdict]) : table(head, rows, displayOf(process.stdout)),
    passing === 0 ? "" : printableLines(["", pass]),
  ].join("");
}

/** A response has no more. */
const QUERIES_MAX = 10_000;

/** What is in the histories now. */
async function recordedTraffic(client: ControlClient, chosen: ContainersRequest): Promise<Traffic> {
  const traffic = new Traffic();
  const { queries, missed } = await client.queries({ ...chosen, last: QUERIES_MAX });
  for (const query of queries) traffic.addQuery(query);
  if (missed > 0) note(`${missed} queries are no longer in the history: use --for to watch for a while`);
  traffic.addConnections(await client.egress(chosen), 0);
  return traffic;
}
