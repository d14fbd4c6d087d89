/**
 * RuleOptions: how a test suite writes a rule, and the rule that it stands for.
 */
import { Fault } from "../../base/lib/fault.ts";
import type { LeaseScope, RuleAnswer, RuleRequest } from "../lease.ts";
import { nearest } from "../../base/lib/nearest.ts";

/** How often a rule applies, and to which queries. */
export interface RuleLimits {
  /** Only the first so many queries of each type. */
  readonly count?: number;
  /** The first of so many queries of each type, again and again. */
  readonly every?: number;
  /** Each with this probability; the same seed gives the same sequence. */
  readonly probability?: number;
  readonly seed?: number;
  /** Names are counted each on its own. */
  readonly perName?: boolean;
  /** Only queries of these types. */
  readonly types?: readonly string[];
  readonly over?: "udp" | "tcp";
  /** Containers within those of the lab. */
  readonly in?: LeaseScope;
}

type Kind<T> = true | (RuleLimits & T);

/** One of the faults, or a preset. */
export interface FaultOptions extends RuleLimits {
  readonly nxdomain?: Kind<unknown>;
  readonly nodata?: Kind<unknown>;
  readonly servfail?: Kind<unknown>;
  readonly refused?: Kind<unknown>;
  readonly drop?: Kind<unknown>;
  readonly truncate?: Kind<unknown>;
  readonly delay?: RuleLimits & { readonly ms: number; readonly jitter?: number };
  readonly preset?: PresetName;
}

/** As in the settings' `records`, or answers one after the other. */
export type LabAnswer =
  | string
  | readonly string[]
  | Readonly<Record<string, unknown>>
  | { readonly sequence: readonly RuleAnswer[]; readonly ttl?: number };

const ACTIONS = ["nxdomain", "nodata", "servfail", "refused", "drop", "truncate", "delay"] as const;
const LIMIT_OPTIONS = ["count", "every", "probability", "seed", "perName", "types", "over", "in"];

export function faultRule(name: string, fault: FaultOptions): RuleRequest {
  refuseUnknownOptions("fault", fault, [...ACTIONS, "preset", ...LIMIT_OPTIONS]);
  const { preset, ...rest } = fault;
  const [action, ...more] = ACTIONS.filter((each) => rest[each] !== undefined);
  if (more.length > 0 || (action === undefined) === (preset === undefined))
    throw new Fault("BAD_OPTION", `A fault is one of ${ACTIONS.join(", ")}, or a preset`);
  const limits = Object.fromEntries(Object.entries(rest).filter(([key]) => LIMIT_OPTIONS.includes(key)));
  if (preset !== undefined) {
    if (!Object.hasOwn(PRESETS, preset))
      throw new Fault("BAD_OPTION", `Unknown preset "${preset}": use one of ${Object.keys(PRESETS).join(", ")}`);
    return { name, ...PRESETS[preset].rule, ...limits };
  }
  const kind = rest[action as (typeof ACTIONS)[number]];
  if (kind !== true && (typeof kind !== "object" || kind === null || Array.isArray(kind)))
    throw new Fault(
      "BAD_OPTION",
      `Invalid fault ${action}: use ${action === "delay" ? "{ ms: 200 }" : "true, or an object such as { count: 2 }"}`,
    );
  if (kind === true && action === "delay") throw new Fault("BAD_OPTION", "Invalid fault delay: use { ms: 200 }");
  if (kind === true) return { name, action: action as RuleRequest["action"], ...limits };
  refuseUnknownOptions(`the fault ${action}`, kind, ["ms", "jitter", ...LIMIT_OPTIONS]);
  return { name, action: action as RuleRequest["action"], ...limits, ...kind };
}

export function answerRule(name: string, answer: LabAnswer, limits: RuleLimits = {}): RuleRequest {
  refuseUnknownOptions("answer", limits, LIMIT_OPTIONS);
  if (typeof answer === "object" && !Array.isArray(answer) && "sequence" in answer) {
    refuseUnknownOptions("the answer", answer, ["sequence", "ttl"]);
    const { sequence, ttl } = answer as { readonly sequence: readonly RuleAnswer[]; readonly ttl?: number };
    return { name, action: "sequence", answers: sequence, ...(ttl !== undefined && { ttl }), ...limits };
  }
  return { name, action: "answer", answer, ...limits };
}

/** Refuses options that there are not. JavaScript would ignore them, and a suite would wait for something else than it says. */
export function refuseUnknownOptions(of: string, options: object | undefined, known: readonly string[]): void {
  for (const key of Object.keys(options ?? {})) {
    if (known.includes(key)) continue;
    const suggestion = nearest(key, known);
    const hint = suggestion === undefined ? `use ${known.join(", ")}` : `did you mean "${suggestion}"?`;
    throw new Fault("BAD_OPTION", `Unknown option "${key}" of ${of}: ${hint}`);
  }
}

/** A number of milliseconds that a timer can have. */
export function readTimeout(of: string, value: unknown): number {
  if (typeof value === "number" && value >= 0 && value <= TIMEOUT_MS_MAX) return value;
  throw new Fault("BAD_OPTION", `Invalid option timeoutMs of ${of}: use a number from 0 to ${TIMEOUT_MS_MAX}`);
}

const TIMEOUT_MS_MAX = 2 ** 31 - 1;

interface Preset {
  readonly rule: Omit<RuleRequest, "name" | "in">;
  /** What happens, for help and documents. */
  readonly what: string;
}

/** Faults that have names, because people know them by what they do to programs. */
export const PRESETS = {
  "five-seconds": {
    rule: { action: "drop", types: ["AAAA"], every: 2, perName: true },
    what: "the first query for the IPv6 addresses of each name gets no reply, and the second one does, so glibc waits its five seconds",
  },
  "dead-first-server": {
    rule: { action: "drop", every: 2, perName: true },
    what: "the first query for each name gets no reply, and the second one does, as if the first server were dead",
  },
  flap: {
    rule: { action: "nxdomain", every: 2 },
    what: "the name is there at every other query",
  },
} as const satisfies Record<string, Preset>;

export type PresetName = keyof typeof PRESETS;
