/**
 * dns11 fault: has names fail in some containers, for as long as the command runs.
 */
import { type Command, InvalidArgumentError } from "commander";

import { PRESETS, type PresetName } from "../src/api/lab/presets.ts";
import type { LeaseConnection } from "../src/api/lease-connection.ts";
import type { RuleActionName, RuleRequest } from "../src/api/lease.ts";
import { counted } from "../src/base/lib/counted.ts";
import { Fault } from "../src/base/lib/fault.ts";
import { type ControlOptions, addControlOptions, clientFor } from "./options/control-options.ts";
import { readDuration } from "./lease/duration.ts";
import { holdLease, ruleReport, untilText, useText } from "./lease/held-lease.ts";
import { jsonLine, printable } from "./text/printable.ts";
import { type ScopeOptions, addScopeOptions, scopeOf, scopeText } from "./lease/scope-options.ts";

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
