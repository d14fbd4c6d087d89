/**
 * dns11 policy diff: what the policies of a file would have refused of the recorded traffic.
 */
import type { Command } from "commander";
import { mergeSettings } from "../src/config/merge-settings.ts";
import { chosenBy } from "../src/policy/book/assignment.ts";
import { type JudgedContainer, judgedTraffic, Traffic } from "../src/policy/traffic/traffic.ts";
import { type ProjectOptions, addProjectOption, containersRequest, note } from "./options/container-argument.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./options/control-options.ts";
import { EXIT } from "./process/exit-code.ts";
import { jsonLine, printableLines } from "./text/printable.ts";
import { table } from "./text/table.ts";
import { displayOf } from "./text/terminal.ts";
import type { ContainersRequest, ControlClient } from "../src/api/control-client.ts";

interface DiffOptions extends ControlOptions, ProjectOptions {}

export function addDiff(policy: Command): void {
  const diff = policy
    .command("diff")
    .description(
      "Show what the policies of a file would have refused of the recorded traffic: exit code 0 if nothing, 1 if something",
    )
    .argument("<file>", "a settings file")
    .argument("[container]", "its name, Compose service or ID; all containers if omitted")
    .exitOverride();
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
  const { readSettingsFile } = await import("../src/config/file/settings-file.ts");
  const { policies } = mergeSettings([await readSettingsFile(file)]);
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
export async function recordedTraffic(client: ControlClient, chosen: ContainersRequest): Promise<Traffic> {
  const traffic = new Traffic();
  const { queries, missed } = await client.queries({ ...chosen, last: QUERIES_MAX });
  for (const query of queries) traffic.addQuery(query);
  if (missed > 0) note(`${missed} queries are no longer in the history: use --for to watch for a while`);
  traffic.addConnections(await client.egress(chosen), 0);
  return traffic;
}
