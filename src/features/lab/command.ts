import { setTimeout as sleep } from "node:timers/promises";

import { type Command, InvalidArgumentError, Option } from "commander";

import { addExamples } from "../../../cmd/help/help-layout.ts";
import { type ControlOptions, addControlOptions, clientFor } from "../../../cmd/options/control-options.ts";
import { readDuration } from "../../../cmd/options/name-options.ts";
import { NewFile } from "../../../cmd/process/new-file.ts";
import { abortOnSignal } from "../../../cmd/process/own-process.ts";
import { jsonLine, printable } from "../../../cmd/text/printable.ts";
import { PRESETS, type PresetName } from "../../api/lab/rule-options.ts";
import { MISSING, type Missing, replayRules, tapeOf } from "../../api/lab/tape.ts";
import type { LeaseConnection } from "../../api/lease-connection.ts";
import type { LeaseScope, RecordedQuery, RuleActionName, RuleRequest, RuleUseReport } from "../../api/lease.ts";
import { counted } from "../../base/lib/text.ts";
import { Fault } from "../../base/lib/fault.ts";

const CODES = ["nxdomain", "nodata", "servfail", "refused", "drop", "truncate"] as const satisfies RuleActionName[];
const CODE_TEXTS: Readonly<Record<(typeof CODES)[number], string>> = {
  nxdomain: "answer that the name does not exist",
  nodata: "answer without records",
  servfail: "answer that the server failed",
  refused: "answer that the query is refused",
  drop: "send no answer",
  truncate: "have the client ask again over TCP",
};

interface FaultOptions extends ControlOptions, ScopeOptions, Partial<Record<(typeof CODES)[number], boolean>> {
  readonly delay?: number;
  readonly jitter?: number;
  readonly answer?: readonly string[];
  readonly only?: boolean;
  readonly preset?: string;
  readonly count?: number;
  readonly every?: number;
  readonly probability?: number;
  readonly seed?: number;
  readonly types?: readonly string[];
  readonly over?: string;
  readonly for?: number;
}

export function addFault(program: Command): void {
  const presets = Object.entries(PRESETS).map(([name, { what }]) => `${name}: ${what}`);
  const command = program
    .command("fault <name...>")
    .summary("Have names fail in containers, to test programs")
    .description(
      "Have names fail in containers until the command is interrupted: x.test is that name, *.x.test one label more, **.x.test any number more",
    );
  addExamples(
    command,
    ["dns11 fault db --in web --servfail --every 3", "one of three queries of web for db fails"],
    ["dns11 fault db cache --in web --only", "nothing but db and cache resolves, and the rest is listed"],
    ["dns11 fault '**' --in web --preset five-seconds", "each lookup by glibc takes five seconds"],
  );
  for (const code of CODES) command.option(`--${code}`, CODE_TEXTS[code]);
  command
    .option("--delay <time>", "answer as always, but so much later", readDuration)
    .option("--jitter <time>", "with --delay: by up to so much more or less", readDuration)
    .option("--answer <addresses>", "answer with these addresses, separated by commas", readList)
    .option("--only", "let nothing but these names resolve, and list what else was asked")
    .option("--preset <name>", presets.join("; "))
    .option("--count <n>", "only the first so many queries of each type", readCount)
    .option("--every <n>", "the first of so many queries of each type, again and again", readCount)
    .option("--probability <p>", "each query with this probability, from 0 to 1", readProbability)
    .option("--seed <n>", "the same seed gives the same sequence", readCount)
    .option("--types <types>", "only queries of these types, such as A,AAAA", readList)
    .option("--over <protocol>", "only queries over udp, or over tcp")
    .option("--for <time>", "end after this time, such as 30s", readDuration)
    .option("--json", "print JSON");
  addControlOptions(addScopeOptions(command)).action(
    async (names: readonly string[], options: FaultOptions) => await fault(names, options),
  );
}

async function fault(names: readonly string[], options: FaultOptions): Promise<void> {
  const rules = rulesOf(names, options);
  const client = await clientFor(options);
  const lease = await client.openLease();
  let containers = 0;
  for (const rule of rules) {
    const reply = await lease.send({ rule });
    if ("id" in reply) containers = Math.max(containers, reply.containers);
  }
  if (options.json !== true) process.stdout.write(`${printable(beginText(rules, containers, options))}\n`);
  await holdLease(lease, options.for);
  await end(lease, options);
}

async function end(lease: LeaseConnection, { json }: FaultOptions): Promise<void> {
  const rules = await ruleReport(lease);
  await lease.close();
  process.stdout.write(json === true ? jsonLine({ rules }) : rules.map((rule) => useText(rule)).join(""));
}

function rulesOf(names: readonly string[], options: FaultOptions): RuleRequest[] {
  const { delay, jitter, answer, only, preset, count, every, probability, seed, types, over } = options;
  const limits = {
    in: scopeOf(options),
    ...(count !== undefined && { count }),
    ...(every !== undefined && { every }),
    ...(probability !== undefined && { probability }),
    ...(seed !== undefined && { seed }),
    ...(types !== undefined && { types }),
    ...(over !== undefined && { over: over as "udp" | "tcp" }),
  };
  const kinds: readonly Omit<RuleRequest, "name">[] = [
    ...CODES.filter((code) => options[code] === true).map((action) => ({ action })),
    ...(delay === undefined ? [] : [{ action: "delay" as const, ms: delay, ...(jitter !== undefined && { jitter }) }]),
    ...(answer === undefined ? [] : [{ action: "answer" as const, answer }]),
    ...(only === true ? [{ action: "only" as const, names }] : []),
    ...(preset === undefined ? [] : [presetRule(preset)]),
  ];
  if (jitter !== undefined && delay === undefined) throw new Fault("USAGE", "--jitter has no effect without --delay");
  const [kind, ...more] = kinds;
  if (kind === undefined || more.length > 0) {
    const flags = [...CODES, "delay", "answer", "only", "preset"].map((each) => `--${each}`).join(", ");
    throw new Fault(
      "USAGE",
      `${kind === undefined ? "No fault is given" : "Several faults are given"}: use one of ${flags}`,
    );
  }
  if (kind.action === "only") return [{ ...kind, ...limits }];
  return names.map((name) => ({ name, ...kind, ...limits }));
}

function presetRule(name: string): Omit<RuleRequest, "name"> {
  if (Object.hasOwn(PRESETS, name)) return PRESETS[name as PresetName].rule;
  throw new Fault("USAGE", `Unknown preset "${name}": use one of ${Object.keys(PRESETS).join(", ")}`);
}

function beginText(rules: readonly RuleRequest[], containers: number, options: FaultOptions): string {
  const what = rules.map(({ name, names = [], action }) => `${action} for ${name ?? names.join(", ")}`).join("; ");
  const where = scopeText(scopeOf(options));
  const served = `${counted(containers, "container")} now, and those that start later`;
  return `in force: ${what}; in ${where} (${served}); ${untilText(options.for)}`;
}

function readList(text: string): string[] {
  return text.split(",").map((each) => each.trim());
}

function readProbability(text: string): number {
  const number = text.trim() === "" ? NaN : Number(text);
  if (!(number >= 0 && number <= 1)) throw new InvalidArgumentError("Use a number from 0 to 1, such as 0.5.");
  return number;
}

function readCount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("Use a whole number.");
  return Number(text);
}

/** As the umask allows. */
const TAPE_MODE = 0o666;

interface RecordOptions extends ControlOptions, ScopeOptions {
  readonly for?: number;
}

export function addRecord(program: Command): void {
  const command = program
    .command("record <file>")
    .summary("Record what containers ask and are answered")
    .description(
      "Record what containers ask and are answered, until the command is interrupted, as a new file to replay",
    )
    .option("--for <time>", "end after this time, such as 10m", readDuration);
  addExamples(command, ["dns11 record shop.yaml --project shop", "until Ctrl-C"]);
  addControlOptions(addScopeOptions(command)).action(
    async (file: string, options: RecordOptions) => await record(file, options),
  );
}

async function record(file: string, options: RecordOptions): Promise<void> {
  const { tapeText } = await import("../../api/lab/tape-file.ts");
  const output = new NewFile(file, TAPE_MODE);
  const client = await clientFor(options);
  const lease = await client.openLease();
  const queries: RecordedQuery[] = [];
  let missed = 0;
  lease.onRecorded = (more, lost) => {
    queries.push(...more);
    missed += lost;
  };
  const scope = scopeOf(options);
  await lease.send({ record: { in: scope } });
  let isSaved = false;
  const save = (): void => {
    if (isSaved) return;
    isSaved = true;
    output.write(tapeText(tapeOf(queries)));
    const lost = missed === 0 ? "" : `; ${missed} queries came too fast and are missing`;
    process.stderr.write(`${queries.length} queries recorded in ${file}${lost}\n`);
  };
  // A second Ctrl-C ends the process at once.
  process.once("exit", save);
  process.stderr.write(`recording ${scopeText(scope)}; ${untilText(options.for)}\n`);
  try {
    await holdLease(lease, options.for);
    // The end of the lease sends what is left.
    await lease.close();
  } finally {
    save();
  }
}

interface ReplayOptions extends ControlOptions, ScopeOptions {
  readonly missing: Missing;
  readonly for?: number;
}

export function addReplay(program: Command): void {
  const command = program
    .command("replay <file>")
    .summary("Answer containers from a recorded file alone")
    .description(
      "Answer containers from a file of dns11 record alone, until the command is interrupted; names of containers stay live",
    )
    .addOption(
      new Option("--missing <result>", "how names that are not in the file fail").choices(MISSING).default("nxdomain"),
    )
    .option("--for <time>", "end after this time, such as 10m", readDuration)
    .option("--json", "print JSON");
  addExamples(command, ["dns11 replay shop.yaml --project shop --missing servfail", "answer from the file alone"]);
  addControlOptions(addScopeOptions(command)).action(
    async (file: string, options: ReplayOptions) => await replay(file, options),
  );
}

async function replay(file: string, options: ReplayOptions): Promise<void> {
  const scope = scopeOf(options);
  const { readTape } = await import("../../api/lab/tape-file.ts");
  const rules = replayRules(readTape(file), scope, options.missing);
  const client = await clientFor(options);
  const lease = await client.openLease();
  await Promise.all(rules.map(async (rule) => await lease.send({ rule })));
  process.stderr.write(`replaying ${file} in ${scopeText(scope)}; ${untilText(options.for)}\n`);
  await holdLease(lease, options.for);
  const used = await ruleReport(lease);
  await lease.close();
  const missing = used.filter(({ action }) => action === "only");
  process.stdout.write(
    options.json === true ? jsonLine({ rules: used }) : missing.map((rule) => useText(rule)).join(""),
  );
}

/** Holds a lease in the foreground: returns when it is interrupted, or after `forMs`; throws a Fault if dns11 has ended it. */
async function holdLease(lease: LeaseConnection, forMs: number | undefined): Promise<void> {
  // The terminal may be closed: what was done or recorded must not be lost with it.
  const signal = abortOnSignal("SIGHUP");
  const interrupted = new Promise<"interrupted">((resolve) =>
    signal.addEventListener("abort", () => resolve("interrupted"), { once: true }),
  );
  const over = forMs === undefined ? [] : [sleep(forMs, "over" as const, { ref: true })];
  const why = await Promise.race([interrupted, lease.ended.then(() => "ended" as const), ...over]);
  if (why !== "ended") return;
  throw new Fault("LEASE_ENDED", "dns11 was stopped or replaced, so the rules are gone", {
    remedy: "Start dns11, and run the command again.",
  });
}

/** How long it is held. */
function untilText(forMs: number | undefined): string {
  return forMs === undefined ? "Ctrl-C ends it" : `for ${forMs / 1000} s`;
}

async function ruleReport(lease: LeaseConnection): Promise<readonly RuleUseReport[]> {
  const reply = await lease.send({ report: true });
  return "report" in reply ? reply.report.rules : [];
}

/** What a rule has done, as lines. */
function useText({ text, matched, applied, containers, refused = [], refusedOthers = 0 }: RuleUseReport): string {
  const who = containers.filter((each) => each.applied > 0).map(({ container }) => container);
  const queries = `${applied} of ${matched} ${matched === 1 ? "query" : "queries"}`;
  const head =
    matched === 0
      ? `${text}: nobody asked`
      : `${text}: applied to ${queries}${who.length === 0 ? "" : ` by ${who.join(", ")}`}`;
  const lines = refused.map(
    ({ container, name, type, count }) => `  ${container}  ${name} ${type}${count === 1 ? "" : ` (${count} times)`}`,
  );
  return [head, ...lines, ...(refusedOthers > 0 ? [`  and ${refusedOthers} more`] : [])]
    .map((line) => `${printable(line)}\n`)
    .join("");
}

interface ScopeOptions {
  readonly in?: string;
  readonly project?: string;
  readonly network?: string;
  readonly label?: string;
}

/** The containers that a lease is for: also ones that start later. */
function addScopeOptions(command: Command): Command {
  return command
    .option("--in <container>", "only in this container, or in those of this Compose service")
    .option("-p, --project <project>", "only containers of this Compose project")
    .option("--network <network>", "only in containers on this network")
    .option("--label <label>", "only in containers with this label, as KEY or KEY=VALUE");
}

function scopeOf({ in: container, project, network, label }: ScopeOptions): LeaseScope {
  return {
    ...(container !== undefined && { container }),
    ...(project !== undefined && { project }),
    ...(network !== undefined && { network }),
    ...(label !== undefined && { label }),
  };
}

/** For messages. */
function scopeText(scope: LeaseScope): string {
  const parts = Object.entries(scope).map(([key, value]) => `${key} ${String(value)}`);
  return parts.length === 0 ? "all containers" : parts.join(", ");
}
