/**
 * Refusal: why a policy refuses a query, or would if it were enforced. There is one for each rule and reason, whatever was
 * queried, so that a container cannot make up any number of them.
 */
import type { Policy } from "../model/policy.ts";
import { type PolicyRule, type Protocol, isWildcard } from "../model/policy-rule.ts";
import { RateLimit } from "../../../base/lib/rate-limit.ts";
import { POLICY_LIMITS } from "../model/limits.ts";

export type RefusalReason =
  /** A rule of `deny`. */
  | "denied"
  /** No rule of `allow`. */
  | "not-allowed"
  /** A wildcard allows the name, but not this record type. */
  | "type"
  /** A wildcard allows the name, but not what stands for it: it is too long. */
  | "length"
  /** Too many new names under a wildcard in a minute. */
  | "new-names"
  /** Too many questions that leave the machine in a minute. */
  | "questions"
  /** The name of another container, with `peers: deny`. */
  | "peers"
  /** The machine itself, with `host: deny`. */
  | "host"
  /** The answer has an address of the machine itself, with `host: deny`. */
  | "host-address"
  /** The answer has an address that is not public, with `private: deny`. */
  | "private"
  /** The kernel cannot hold the container to it. */
  | "not-enforceable"
  /** The container chooses a policy that the settings do not have. */
  | "undefined-policy";

export interface Refusal {
  readonly policy: Policy;
  readonly reason: RefusalReason;
  /** Undefined where the absence of one is the reason, or a choice of the policy. */
  readonly rule: PolicyRule | undefined;
  /** Otherwise it is only recorded. */
  readonly isEnforced: boolean;
  /** For people, with file and line. */
  readonly text: string;
}

/** Why a policy that enforces addresses cannot do so: then nothing is resolved. */
export function hindranceOf(policy: Policy, why: string): Refusal {
  const text = `policy ${policy.name}: not enforceable: ${why} (${policy.where})`;
  return { policy, reason: "not-enforceable", rule: undefined, isEnforced: policy.mode === "enforce", text };
}

export function refusalOf(
  policy: Policy,
  reason: Exclude<RefusalReason, "not-enforceable">,
  rule?: PolicyRule,
): Refusal {
  const isEnforced = policy.mode === "enforce";
  return { policy, reason, rule, isEnforced, text: `policy ${policy.name}: ${sentence(policy, reason, rule)}` };
}

function sentence(
  policy: Policy,
  reason: Exclude<RefusalReason, "not-enforceable">,
  rule: PolicyRule | undefined,
): string {
  const place = rule === undefined ? policy.where : `${policy.file}:${rule.line}`;
  const text = rule?.text ?? "";
  switch (reason) {
    case "denied":
      return `deny ${text} (${place})`;
    case "not-allowed":
      return `no rule allows it (${place})`;
    case "type":
      return `${text} does not allow this record type (${place})`;
    case "length":
      return `${text} does not allow so long a name (${place})`;
    case "new-names":
      return `more than ${policy.newNamesPerMinute} new names in a minute under ${text} (${place})`;
    case "questions":
      return `more than ${questionsPerMinute(policy, rule)} questions in a minute leave the machine${rule === undefined ? "" : ` under ${text}`} (${place})`;
    case "peers":
      return `peers: ${policy.peers} (${place})`;
    case "host":
      return `host: ${policy.host} (${place})`;
    case "host-address":
      return `host: ${policy.host}, and the answer has an address of this machine (${place})`;
    case "private":
      return `private: ${policy.private}, and the answer has such an address (${place})`;
    case "undefined-policy":
      return `the settings define no such policy, which ${place} chooses`;
  }
}

interface Port {
  readonly port: number;
  readonly protocol: Protocol;
}

/**
 * With which ports and protocols an address is allowed: all, or those that rules name. A rule that names a port and no
 * protocol means TCP where it allows, and both where it denies.
 */
export type Ports = "all" | readonly Port[];

const ALL_PORTS = "all";

/** A denied port closes whatever a rule without a port would open: which others are meant must be said. */
export function portsOf(allowed: readonly PolicyRule[], denied: readonly PolicyRule[]): Ports {
  if (denied.length === 0 && allowed.some(({ port }) => port === undefined)) return ALL_PORTS;
  const found = new Map<string, Port>();
  for (const { port, protocol = "tcp" } of allowed) {
    if (port !== undefined && !denied.some((rule) => rule.port === port && (rule.protocol ?? protocol) === protocol))
      found.set(`${port}/${protocol}`, { port, protocol });
  }
  return [...found.values()];
}

export function hasPort(ports: Ports, port: number | undefined, protocol: string): boolean {
  return ports === ALL_PORTS || ports.some((each) => each.port === port && each.protocol === protocol);
}

/** What each of several policies allows. */
export function commonPorts(each: readonly Ports[]): Ports {
  return each.reduce<Ports>((common, ports) => {
    if (common === ALL_PORTS) return ports;
    if (ports === ALL_PORTS) return common;
    return common.filter(({ port, protocol }) =>
      ports.some((other) => other.port === port && other.protocol === protocol),
    );
  }, ALL_PORTS);
}

/** A new name is asked for IPv4 and IPv6. */
const QUESTIONS_PER_NAME = 2;
const MINUTE_SECONDS = 60;
/** A program that starts asks for most of its names. */
const BURST_MINUTES = 2;

function questionsPerMinute({ newNamesPerMinute }: Policy, rule: PolicyRule | undefined): number {
  if (rule === undefined || !isWildcard(rule)) return POLICY_LIMITS.questionsPerMinute;
  return POLICY_LIMITS.wildcardQuestionsPerMinute + QUESTIONS_PER_NAME * newNamesPerMinute;
}

/**
 * How many questions of a container leave the machine in a minute, by the rule that allows them; of reverse names, and of
 * what an operator allows for a while, together. Whoever runs the servers of an allowed name learns of each what was chosen, and when:
 * a name among those that are known, a type, their order. A limit for each rule bounds what each of them learns, and leaves programs
 * with many names as much for each.
 */
export class Questions {
  readonly #policy: Policy;
  readonly #now: () => number;
  readonly #limits = new Map<PolicyRule | undefined, RateLimit>();

  constructor(policy: Policy, now: () => number) {
    this.#policy = policy;
    this.#now = now;
  }

  /** Whether one more may leave. `isPeek`: it does not, so it does not count. */
  admit(rule: PolicyRule | undefined, isPeek: boolean): boolean {
    const limit = this.#limits.get(rule) ?? this.#limitOf(rule);
    return isPeek ? limit.has() : limit.take();
  }

  #limitOf(rule: PolicyRule | undefined): RateLimit {
    const perMinute = questionsPerMinute(this.#policy, rule);
    const rate = { burst: BURST_MINUTES * perMinute, perSecond: perMinute / MINUTE_SECONDS };
    const limit = new RateLimit(rate, this.#now);
    this.#limits.set(rule, limit);
    return limit;
  }
}
