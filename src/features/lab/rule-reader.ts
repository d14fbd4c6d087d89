import { type LeaseScope, RULE_ACTIONS, type RuleActionName } from "../../api/lease.ts";
import { wireLabels } from "../../base/dns/name.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { parseType } from "../../base/dns/record-type.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { nearest } from "../../base/lib/nearest.ts";
import { type Pattern, readPattern, PatternIndex } from "../../base/model/name-pattern.ts";
import { StoredName } from "../../base/model/label-table.ts";
import { readNameValue } from "../../config/records/name-value.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { namedContainer, sharedOwner } from "../../control/situation/find-container.ts";
import type { FixedReply } from "../../query/verdict.ts";
import type { RuleScope } from "./rule-book.ts";
import type { Rule, RuleAction } from "./rules.ts";

/** What a rule says, without whose it is. */
export interface ReadRule extends Pick<Rule, "pattern" | "types" | "over" | "action" | "limits"> {
  readonly actionName: RuleActionName;
  /** What it does, for people. */
  readonly what: string;
}

const EVERY_NAME = readPattern("**");
const COMMON = ["action", "in", "types", "over", "count", "every", "probability", "seed", "perName"];
/** The other fields of each action. */
const FIELDS: Readonly<Record<RuleActionName, readonly string[]>> = {
  nxdomain: ["name"],
  nodata: ["name"],
  servfail: ["name"],
  refused: ["name"],
  drop: ["name"],
  truncate: ["name"],
  delay: ["name", "ms", "jitter"],
  answer: ["name", "answer", "ttl"],
  sequence: ["name", "answers", "ttl"],
  only: ["names", "fail"],
};
const CODES: Partial<Record<RuleActionName, number>> = {
  nxdomain: RCODE.NXDOMAIN,
  nodata: RCODE.NOERROR,
  servfail: RCODE.SERVFAIL,
  refused: RCODE.REFUSED,
};
/** As answers in a sequence are written. */
const CODE_WORDS: Readonly<Record<string, number>> = {
  NXDOMAIN: RCODE.NXDOMAIN,
  NODATA: RCODE.NOERROR,
  NOERROR: RCODE.NOERROR,
  SERVFAIL: RCODE.SERVFAIL,
  REFUSED: RCODE.REFUSED,
};

/** Of what a hermetic rule denies. */
const FAILS = new Map<string, number>([
  ["nxdomain", RCODE.NXDOMAIN],
  ["servfail", RCODE.SERVFAIL],
  ["refused", RCODE.REFUSED],
]);

const COUNT_MAX = 1_000_000;
/** Nothing waits for an answer any longer. */
const DELAY_MS_MAX = 60_000;
const ANSWERS_MAX = 1_000;
const NAMES_MAX = 1_000;
const TYPES_MAX = 32;
const TTL_MAX = 86_400;
/** Nobody may keep the answer of a test for longer than the test needs. */
const TTL_DEFAULT = 1;

/** Answers are written as in the settings' `records`, so that whoever knows one knows both. */
export function readRule(value: unknown): ReadRule {
  const fields = fieldsOf(value, "rule", '{"name": "db", "action": "servfail"}');
  const actionName = readAction(fields);
  const common = actionName === "only" ? ["action", "in"] : COMMON;
  refuseUnknownKeys(fields, [...common, ...FIELDS[actionName]], `a rule with the action ${actionName}`);
  const pattern = actionName === "only" ? EVERY_NAME : patternOf(fields);
  const limits = {
    count: numberOf(fields, "count", 1, COUNT_MAX),
    every: numberOf(fields, "every", 1, COUNT_MAX),
    probability: numberOf(fields, "probability", 0, 1, false),
    seed: numberOf(fields, "seed", 0, 0xffff_ffff),
    isPerName: flagOf(fields, "perName"),
  };
  if (limits.seed !== undefined && limits.probability === undefined && actionName !== "delay")
    throw badRule("A seed has no effect without a probability or a delay: add one, or leave it out");
  const types = typesOf(fields);
  const over = overOf(fields);
  const action = actionOf(actionName, fields);
  const what = [
    actionName === "only" ? `only ${namesText(fields)}` : `${actionText(action, actionName)} for "${pattern.text}"`,
    ...(types === undefined ? [] : [`types ${(listOf(fields, "types", TYPES_MAX) ?? []).join(", ")}`]),
    ...(over === undefined ? [] : [`over ${over}`]),
    ...(limits.count === undefined ? [] : [`the first ${limits.count}`]),
    ...(limits.every === undefined ? [] : [`one of ${limits.every}`]),
    ...(limits.probability === undefined ? [] : [`with probability ${limits.probability}`]),
  ].join(", ");
  return { actionName, pattern, types, over, action, limits, what };
}

function readAction(fields: Fields): RuleActionName {
  const action = textOf(fields, "action");
  if (action === undefined) throw badRule(`A rule needs an action: use one of ${RULE_ACTIONS.join(", ")}`);
  const known = RULE_ACTIONS.find((each) => each === action);
  if (known !== undefined) return known;
  const suggestion = nearest(action, RULE_ACTIONS);
  const hint = suggestion === undefined ? "" : `did you mean ${suggestion}? `;
  throw badRule(`Unknown action ${quoted(action)}: ${hint}use one of ${RULE_ACTIONS.join(", ")}`);
}

function patternOf(fields: Fields): Pattern {
  const name = textOf(fields, "name");
  if (name === undefined) throw badRule('A rule needs a name: use one such as "db", or "**" for all names');
  return patternIn(name);
}

function patternIn(text: unknown): Pattern {
  if (typeof text !== "string") throw badRule(`Invalid name ${quoted(text)}: use a text`);
  try {
    return readPattern(text);
  } catch (error) {
    throw badRule(capital(reasonOf(error)));
  }
}

function typesOf(fields: Fields): ReadonlySet<number> | undefined {
  const list = listOf(fields, "types", TYPES_MAX);
  if (list === undefined) return undefined;
  return new Set(
    list.map((each) => {
      try {
        return parseType(String(each));
      } catch (error) {
        throw badRule(capital(reasonOf(error)));
      }
    }),
  );
}

function overOf(fields: Fields): "udp" | "tcp" | undefined {
  const over = textOf(fields, "over");
  if (over === undefined || over === "udp" || over === "tcp") return over;
  throw badRule(`Invalid over ${quoted(over)}: use udp or tcp`);
}

function actionOf(name: RuleActionName, fields: Fields): RuleAction {
  const code = CODES[name];
  if (code !== undefined) return { kind: "rcode", rcode: code };
  switch (name) {
    case "drop":
    case "truncate":
      return { kind: name };
    case "delay": {
      const ms = numberOf(fields, "ms", 0, DELAY_MS_MAX);
      if (ms === undefined) throw badRule('A delay needs its length in milliseconds: add "ms", such as 200');
      return { kind: "delay", ms, jitterMs: numberOf(fields, "jitter", 0, DELAY_MS_MAX) ?? 0 };
    }
    case "only": {
      const names = new PatternIndex<true>();
      for (const each of listOf(fields, "names", NAMES_MAX) ?? []) names.add(patternIn(each), true);
      const fail = textOf(fields, "fail") ?? "nxdomain";
      const rcode = FAILS.get(fail);
      if (rcode === undefined) throw badRule(`Invalid fail ${quoted(fail)}: use nxdomain, servfail or refused`);
      return { kind: "only", names, rcode };
    }
    case "answer": {
      if (fields["answer"] === undefined) throw badRule('An answer is missing: add "answer", such as ["10.0.0.5"]');
      const ttl = numberOf(fields, "ttl", 0, TTL_MAX);
      return { kind: "replies", replies: [replyOf(fields["answer"], ttl)] };
    }
    default: {
      const answers = listOf(fields, "answers", ANSWERS_MAX);
      if (answers === undefined)
        throw badRule('The answers are missing: add "answers", such as [["10.0.0.1"], ["10.0.0.2"]]');
      const ttl = numberOf(fields, "ttl", 0, TTL_MAX);
      const count = answers.reduce<number>((sum, each) => sum + timesOf(each), 0);
      if (count > ANSWERS_MAX) throw badRule(`The sequence has ${count} answers: use at most ${ANSWERS_MAX}`);
      const replies = answers.flatMap((each) => Array<FixedReply>(timesOf(each)).fill(replyOf(each, ttl)));
      return { kind: "replies", replies };
    }
  }
}

/** An answer may come several times in a row. */
function timesOf(value: unknown): number {
  const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
  return (isMap ? numberOf(value as Fields, "times", 1, ANSWERS_MAX) : undefined) ?? 1;
}

/** A response code, or records as in the settings; `cnames` lead to them. */
function replyOf(value: unknown, ttl: number | undefined): FixedReply {
  if (typeof value === "string" && Object.hasOwn(CODE_WORDS, value.toUpperCase())) {
    return { rcode: CODE_WORDS[value.toUpperCase()] as number, links: [], records: NO_RECORDS };
  }
  const { rcode, cnames, records } = partsOf(value);
  try {
    const read = records === undefined ? undefined : readNameValue("", records);
    const ttlSeconds = ttl ?? read?.ttlSeconds ?? TTL_DEFAULT;
    const sets = new Map<number, Uint8Array[]>();
    for (const { type, data } of read?.records ?? []) sets.set(type, [...(sets.get(type) ?? []), data]);
    return {
      rcode,
      links: cnames.map((each) => ({ ttlSeconds, target: labelsOf(each) })),
      records: {
        ttlSeconds,
        sets,
        alias: read?.alias === undefined ? undefined : new StoredName(labelsOf(read.alias)),
        containers: (read?.containers ?? []).map((each) => new StoredName(labelsOf(each))),
        isSorted: true,
      },
    };
  } catch (error) {
    throw badRule(capital(reasonOf(error)));
  }
}

const NO_RECORDS: FixedReply["records"] = { ttlSeconds: undefined, sets: new Map(), alias: undefined, containers: [] };

/** A map may have a response code and the CNAMEs in front of its records, as tapes do. */
function partsOf(value: unknown): {
  readonly rcode: number;
  readonly cnames: readonly string[];
  readonly records: unknown;
} {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return { rcode: RCODE.NOERROR, cnames: [], records: value };
  const { rcode: word, cnames = [], times: _, ...records } = value as Fields;
  const rcode =
    word === undefined ? RCODE.NOERROR : typeof word === "string" ? CODE_WORDS[word.toUpperCase()] : undefined;
  if (rcode === undefined)
    throw badRule(`Invalid rcode ${quoted(word)}: use one of ${Object.keys(CODE_WORDS).join(", ")}`);
  if (!Array.isArray(cnames) || cnames.length > CNAMES_MAX || !cnames.every((each) => typeof each === "string"))
    throw badRule(`Invalid cnames: use a list of at most ${CNAMES_MAX} names`);
  const hasRecords = Object.keys(records).some((key) => key !== "ttl");
  return { rcode, cnames, records: hasRecords ? records : undefined };
}

const CNAMES_MAX = 16;

function labelsOf(name: string): Uint8Array {
  const labels = wireLabels(name.replace(/\.$/, ""));
  if (labels === undefined) throw badRule(`Invalid name ${quoted(name)}: use a name such as db.shop.test`);
  return labels;
}

function actionText(action: RuleAction, name: RuleActionName): string {
  if (action.kind === "delay") return `${name} ${action.ms}${action.jitterMs === 0 ? "" : `±${action.jitterMs}`} ms`;
  return name;
}

function namesText(fields: Fields): string {
  const names = listOf(fields, "names", NAMES_MAX);
  if (names === undefined) return "nothing";
  const [first = "", second, third, ...rest] = names.map(String);
  const shown = [first, second, third].filter((each) => each !== undefined).join(", ");
  return rest.length === 0 ? shown : `${shown} and ${rest.length} more`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The beginning of an ID has at least so many characters, as people copy it. */
const ID_MIN = 6;
const SCOPE_KEYS = ["container", "project", "service", "network", "label"];

type Facts = ReadonlyMap<string, ContainerFact>;

interface ReadScope {
  readonly scope: RuleScope;
  /** The key of the label by which containers are chosen. */
  readonly labelKey: string | undefined;
}

/**
 * The containers that a rule of a lease is for, by what they are. A container that uses the namespace of another one queries from there, so
 * the rule is for that one.
 */
export function readScope(value: unknown, facts: () => Facts): ReadScope {
  if (value === undefined) return { scope: scopeOf({}, facts), labelKey: undefined };
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw badRule('Invalid value of in: use a map such as {"container": "app"}');
  refuseUnknownKeys(value, SCOPE_KEYS, "in");
  const wanted: Record<string, string> = {};
  for (const key of SCOPE_KEYS) {
    const text = textOf(value as Fields, key);
    if (text !== undefined) wanted[key] = text;
  }
  return { scope: scopeOf(wanted, facts), labelKey: wanted["label"]?.split("=")[0] };
}

function scopeOf(wanted: LeaseScope, facts: () => Facts): RuleScope {
  return {
    key: JSON.stringify(SCOPE_KEYS.map((key) => wanted[key as keyof LeaseScope] ?? null)),
    select: () => {
      const all = facts();
      const ids = new Set<string>();
      for (const fact of all.values()) if (matches(fact, wanted)) ids.add((sharedOwner(all, fact) ?? fact).id);
      return ids;
    },
  };
}

function matches(fact: ContainerFact, { container, project, service, network, label }: LeaseScope): boolean {
  const place = namedContainer(fact);
  return (
    (container === undefined ||
      fact.name === container ||
      place.service === container ||
      (container.length >= ID_MIN && fact.id.startsWith(container))) &&
    (project === undefined || place.project === project) &&
    (service === undefined || place.service === service) &&
    (network === undefined || fact.endpoints.some(({ networkName }) => networkName === network)) &&
    (label === undefined || hasLabel(fact, label))
  );
}

/** Labels of images count, too: a rule gives its container nothing. */
function hasLabel({ labels, imageLabels }: ContainerFact, text: string): boolean {
  const [key = "", ...rest] = text.split("=");
  const value = Object.hasOwn(labels, key)
    ? labels[key]
    : Object.hasOwn(imageLabels.labels, key)
      ? imageLabels.labels[key]
      : undefined;
  return value !== undefined && (rest.length === 0 || value === rest.join("="));
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * What is unknown in a line, or has another form, is an error that says what to use, so that a typo never makes a rule that does something
 * else.
 */
export function badRule(message: string): Fault {
  return new Fault("BAD_RULE", message);
}

export function fieldsOf(value: unknown, what: string, example: string): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw badRule(`Invalid ${what}: use a map such as ${example}`);
}

export function refuseUnknownKeys(fields: object, known: readonly string[], what: string): void {
  const unknown = Object.keys(fields).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const suggestion = nearest(unknown, known);
  const hint = suggestion === undefined ? "" : `did you mean ${suggestion}? `;
  throw badRule(`Unknown field ${quoted(unknown)} of ${what}: ${hint}use ${known.join(", ")}`);
}

function textOf(fields: Fields, key: string): string | undefined {
  const value = fields[key];
  if (value === undefined) return undefined;
  if (typeof value === "string" && value !== "") return value;
  throw badRule(`Invalid ${key} ${quoted(value)}: use a text`);
}

/** A number between two others. */
export function numberOf(fields: Fields, key: string, min: number, max: number, isWhole = true): number | undefined {
  const value = fields[key];
  if (value === undefined) return undefined;
  if (typeof value === "number" && value >= min && value <= max && (!isWhole || Number.isInteger(value))) return value;
  throw badRule(`Invalid ${key} ${quoted(value)}: use a ${isWhole ? "whole " : ""}number from ${min} to ${max}`);
}

function flagOf(fields: Fields, key: string): boolean | undefined {
  const value = fields[key];
  if (value === undefined || typeof value === "boolean") return value;
  throw badRule(`Invalid ${key} ${quoted(value)}: use true or false`);
}

function listOf(fields: Fields, key: string, max: number): readonly unknown[] | undefined {
  const value = fields[key];
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.length > 0 && value.length <= max) return value;
  throw badRule(`Invalid ${key}: use a list of 1 to ${max}`);
}

const SHOWN_MAX = 60;

/** A value in a message. What is nested is shown by its kind alone, because it may be nested very deeply. */
function quoted(value: unknown): string {
  if (Array.isArray(value)) return "(a list)";
  if (typeof value === "object" && value !== null) return "(a map)";
  const text = JSON.stringify(value) ?? String(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}...` : text;
}
