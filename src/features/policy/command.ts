import { type Command, InvalidArgumentError, Option } from "commander";
import type { ClosedMoment, PoliciesReport, PolicyCheck, PolicyContainer, PolicyRefusal } from "../../api/policies.ts";
import { addExamples } from "../../../cmd/help/help-layout.ts";
import { durationText } from "../../base/lib/quantity.ts";
import { readDuration } from "../../../cmd/options/name-options.ts";
import { type ProjectOptions, addProjectOption, containersRequest } from "../../../cmd/options/container-argument.ts";
import {
  type ControlOptions,
  addControlOptions,
  addJsonOption,
  clientFor,
} from "../../../cmd/options/control-options.ts";
import { EXIT } from "../../../cmd/process/exit-code.ts";
import { abortOnSignal, stopped } from "../../../cmd/process/own-process.ts";
import { jsonLine, printable, printableLines } from "../../../cmd/text/printable.ts";
import { type Column, type Row, table } from "../../../cmd/text/table.ts";
import { type Display, displayOf, localTime } from "../../../cmd/text/terminal.ts";
import { onThisPlatform } from "../../../cmd/modules/platform.ts";

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

export function add(program: Command): void {
  const policy = program
    .command("policy")
    .summary("List containers with a policy, and what it refuses")
    .description("List containers with a policy, how far each is confined, and how much was refused")
    .enablePositionalOptions()
    .allowExcessArguments(false)
    .helpCommand(false)
    .exitOverride();
  addExamples(
    policy,
    ["dns11 policy", "containers with a policy, and how far each is confined"],
    ["dns11 policy check api.example.com agent", "whether a name is allowed, and by which rule"],
    ["dns11 policy allow api.example.com --in agent --for 15m", "allow a name for a while"],
  );
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
  addExamples(
    check,
    ["dns11 policy check api.example.com:443 agent", "whether agent may resolve it, and by which rule"],
    ["dns11 policy check api.example.com agent --type TXT", "another record type"],
  );
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
  addExamples(allow, ["dns11 policy allow '*.example.com' --in agent --for 1h", "a pattern, as in the settings"]);
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
  addExamples(
    log,
    ["dns11 policy log", "what was refused lately, and by which rule"],
    ["dns11 policy log agent -f", "as it happens, in one container"],
  );
  addJsonOption(addControlOptions(addProjectOption(log)), "print JSON; with --follow, one object per line").action(
    async (container: string | undefined, options: LogOptions) => await showLog(container, options),
  );
  addClose(policy);
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

/** Before Docker starts, for the unit dns11-boot.service. */
function addClose(policy: Command): void {
  const close = policy
    .command("close")
    .description(
      "Close the networks of enforced policies as they were when dns11 ran last, until it runs again; dns11-boot.service does so before Docker starts",
    )
    .exitOverride()
    .action(async () => {
      const { closeNetworks } = await onThisPlatform(async () => await import("./close-networks.ts"));
      process.stdout.write(printableLines(await closeNetworks()));
    });
  addExamples(close, ["dns11 policy close", "before dockerd is started by hand"]);
}

const HEAD: readonly Column[] = [
  { title: "CONTAINER", min: 12 },
  { title: "POLICY", min: 8 },
  { title: "MODE" },
  { title: "REFUSED", isNumber: true },
  { title: "WOULD REFUSE", isNumber: true, drop: 1 },
  { title: "CLOSED AT" },
];

const MOMENTS = ["boot", "birth", "life", "death"] as const;

function policiesText({ policies, containers }: PoliciesReport, display: Display): string {
  if (policies.length === 0 && containers.length === 0)
    return "the settings have no policies: see policies in dns11 man dns11.yaml\n";
  if (containers.length === 0) {
    const each = policies.map(({ name, for: scopes }) => `${name} (${scopes.join(", ") || "label io.dns11.policy"})`);
    return `no container has a policy; those defined are for: ${each.join("; ")}\n`;
  }
  const rows = containers.map((container): Row => {
    const { policies: own, mode, refused, wouldRefuse, notServed, problems, grants, names } = container;
    return {
      cells: [
        container.container,
        own.map(({ name }) => name).join(", "),
        { text: mode, colour: mode === "enforce" ? "bold" : undefined },
        String(refused),
        String(wouldRefuse),
        notServed === null ? closedText(container) : { text: "not served", colour: "red" },
      ],
      notes: [
        ...refusedText(container),
        ...problems.map((text) => ({ text: `  ${text}`, colour: "red" as const })),
        ...(names.length === 0 ? [] : [`  last: ${names.join(", ")}`]),
        ...grants.map((text) => `  ${text}`),
      ],
    };
  });
  return `${table(HEAD, rows, display)}\n${openText(containers)}`;
}

const REFUSED_SHOWN = 5;

/** Addresses that it tried, and whose name it never got. */
function refusedText({ addresses }: PolicyContainer): string[] {
  const refused = addresses?.refused ?? [];
  if (refused.length === 0) return [];
  const more = refused.length > REFUSED_SHOWN ? `, and ${refused.length - REFUSED_SHOWN} more` : "";
  return [`  refused connections in the last day: ${refused.slice(0, REFUSED_SHOWN).join(", ")}${more}`];
}

function closedText(container: PolicyContainer): string {
  return MOMENTS.filter((each) => container[each].isClosed).join(", ") || "-";
}

/** Why each moment is open: once for all containers of which that is true. */
function openText(containers: readonly PolicyContainer[]): string {
  const reasons = MOMENTS.flatMap((each) => {
    const open = containers
      .filter(({ notServed }) => notServed === null)
      .map((container): ClosedMoment => container[each])
      .filter(({ isClosed }) => !isClosed);
    return [...new Set(open.map(({ because }) => because))].map((because) => `open at ${each}: ${because}`);
  });
  return printableLines(reasons);
}

function verdictText({ container, name, port, type, verdict, because, notes, fix }: PolicyCheck): readonly string[] {
  const what = `${name}${port === null ? "" : `:${port}`}${type === "A" ? "" : ` ${type}`}`;
  const verb = {
    allowed: "allowed",
    refused: "refused",
    "would-refuse": "only recorded: it would be refused if the policy were enforced",
    "no-policy": "not filtered",
  }[verdict];
  return [
    `${what} in ${container}: ${verb}`,
    `  ${because}`,
    ...notes.map((note) => `  ${note}`),
    ...(fix === null ? [] : [`  to allow it for a while: ${fix}`]),
  ];
}

function refusalText(refusal: PolicyRefusal, nowMs: number): string {
  const { last, container, name, type, verdict, because, count } = refusal;
  const times = count === 1 ? "" : ` (${count} times)`;
  const verb = verdict === "refused" ? "refused" : "would refuse";
  return `${localTime(last, nowMs)} ${container} ${verb} ${name ?? "a name"} ${type}${times}: ${because}`;
}
