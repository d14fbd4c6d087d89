/**
 * dns11 policy: containers with a policy, what is refused and why, and what an operator allows for a while.
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { PoliciesReport, PolicyRefusal } from "../src/api/policies.ts";
import { durationText } from "../src/base/lib/quantity.ts";
import { readDuration } from "./options/name-options.ts";
import { type ProjectOptions, addProjectOption, containersRequest } from "./options/container-argument.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./options/control-options.ts";
import { addDiff } from "./policy-diff.ts";
import { addLearn } from "./policy-learn.ts";
import { EXIT } from "./process/exit-code.ts";
import { abortOnSignal, stopped } from "./process/own-process.ts";
import { policiesText, refusalText, verdictText } from "./text/policy-text.ts";
import { jsonLine, printable, printableLines } from "./text/printable.ts";
import { displayOf } from "./text/terminal.ts";
import { hostModules } from "./modules/platform.ts";

interface CheckOptions extends ControlOptions {
  readonly type?: string;
}

interface AllowOptions extends ControlOptions {
  readonly in: string;
  readonly for: number;
}

interface LogOptions extends ControlOptions, ProjectOptions {
  readonly last?: number;
  readonly follow?: boolean;
}

const LAST_MAX = 2_000;

export function addPolicy(program: Command): void {
  const policy = program
    .command("policy")
    .summary("List containers with a policy, and what it refuses")
    .description("List containers with a policy, how far each is confined, and how much was refused")
    .enablePositionalOptions()
    .allowExcessArguments(false)
    .helpCommand(false)
    .exitOverride();
  addJsonOption(addControlOptions(policy)).action(async (options: ControlOptions) => {
    const report = await (await clientFor(options)).policies();
    process.stdout.write(options.json === true ? jsonLine(report) : policiesText(report, displayOf(process.stdout)));
    if (hasProblems(report)) process.exitCode = EXIT.failure;
  });
  const check = policy
    .command("check")
    .description("Say whether a container may resolve a name, and by which rule: exit code 0 if it may, 1 if not")
    .argument("<name>", "a name or an address, with a port if it matters, as in api.example.com:443")
    .argument("<container>", "its name, Compose service or ID")
    .option("-t, --type <type>", "record type (default: A)")
    .exitOverride();
  addJsonOption(addControlOptions(check)).action(
    async (name: string, container: string, options: CheckOptions) => await checkName(name, container, options),
  );
  const allow = policy
    .command("allow")
    .description(
      "Allow a container a name for a while, whatever its policy says of names; it is logged, and ends with its time, or with dns11",
    )
    .argument("<name>", "a name, or a pattern: *.x.test one label more, **.x.test any number more")
    .requiredOption("--in <container>", "its name, Compose service or ID")
    .requiredOption("--for <time>", "how long, such as 15m; at most a day", readDuration)
    .exitOverride();
  addJsonOption(addControlOptions(allow)).action(
    async (name: string, options: AllowOptions) => await allowName(name, options),
  );
  const log = policy
    .command("log")
    .description("Show what policies have refused, or would have, and by which rule")
    .argument("[container]", "its name, Compose service or ID; all containers if omitted")
    .addOption(new Option("-n, --last <number>", "show so many (default: 100)").argParser(readCount))
    .option("-f, --follow", "show refusals as they happen")
    .exitOverride();
  addJsonOption(addControlOptions(addProjectOption(log)), "print JSON; with --follow, one object per line").action(
    async (container: string | undefined, options: LogOptions) => await showLog(container, options),
  );
  addClose(policy);
  addLearn(policy);
  addDiff(policy);
}

async function checkName(name: string, container: string, options: CheckOptions): Promise<void> {
  const client = await clientFor(options);
  const result = await client.checkPolicy({
    name,
    container,
    ...(options.type !== undefined && { type: options.type }),
  });
  process.stdout.write(options.json === true ? jsonLine(result) : printableLines(verdictText(result)));
  if (result.verdict === "refused") process.exitCode = EXIT.failure;
}

async function allowName(name: string, options: AllowOptions): Promise<void> {
  const client = await clientFor(options);
  const allowed = await client.allowName({ name, container: options.in, forMs: options.for });
  if (options.json === true) {
    process.stdout.write(jsonLine(allowed));
    return;
  }
  const shared =
    allowed.sharedWith === undefined ? "" : `, and whatever shares the namespace of ${allowed.sharedWith},`;
  const who = printable(`${allowed.container}${shared}`);
  process.stdout.write(`${who} may resolve ${printable(allowed.name)} for ${durationText(options.for)}\n`);
}

async function showLog(container: string | undefined, options: LogOptions): Promise<void> {
  const client = await clientFor(options);
  const chosen = await containersRequest(client, container, options);
  const request = { ...chosen, ...(options.last !== undefined && { last: options.last }) };
  const show = (each: PolicyRefusal): string =>
    options.json === true ? jsonLine(each) : `${printable(refusalText(each, Date.now()))}\n`;
  if (options.follow !== true) {
    const report = await client.policyLog(request);
    if (options.json === true) process.stdout.write(jsonLine(report));
    else for (const each of report.refusals) process.stdout.write(show(each));
    return;
  }
  const signal = abortOnSignal();
  for await (const each of client.followPolicyLog(request, signal)) process.stdout.write(show(each));
  if (!signal.aborted) throw stopped();
}

/** What an operator has to see to is an error, so that a script notices. */
function hasProblems({ containers }: PoliciesReport): boolean {
  return containers.some(({ problems }) => problems.length > 0);
}

function readCount(text: string): number {
  const count = Number(text);
  if (/^\d{1,4}$/.test(text) && count <= LAST_MAX) return count;
  throw new InvalidArgumentError(`Use a whole number from 0 to ${LAST_MAX}.`);
}

/** Dns11 policy close: closes networks before Docker starts, for the unit dns11-boot.service. */
function addClose(policy: Command): void {
  policy
    .command("close")
    .description(
      "Close the networks of enforced policies as they were when dns11 ran last, until it runs again; dns11-boot.service does so before Docker starts",
    )
    .exitOverride()
    .action(async () => {
      const { closeNetworks } = await hostModules();
      process.stdout.write(printableLines(await closeNetworks()));
    });
}
