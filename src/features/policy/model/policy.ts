/**
 * Policy: what some containers may resolve and connect to, as the settings declare it. It is about containers by what they are:
 * their networks, their Compose project or service, or a label.
 */
import type { PolicyRule } from "./policy-rule.ts";
import type { AddressBlock } from "../../../base/model/address.ts";
import { TYPE } from "../../../base/dns/record-type.ts";

/** `audit` and `learn` refuse nothing: they record what `enforce` would refuse, and what was used. */
export const POLICY_MODES = ["audit", "learn", "enforce"] as const;
export type PolicyMode = (typeof POLICY_MODES)[number];

/** Containers on common networks: `names` resolves them, `allow` lets connections to them pass, too. */
export const PEERS_CHOICES = ["allow", "names", "deny"] as const;
export const HOST_CHOICES = ["allow", "deny"] as const;
export const PRIVATE_CHOICES = ["allow", "deny"] as const;
export const ADDRESSES_CHOICES = ["names", "enforce"] as const;

/** Which containers a policy is for: any of its scopes is enough. */
export type PolicyScope =
  | { readonly kind: "network" | "project" | "service" | "container"; readonly name: string }
  | { readonly kind: "label"; readonly key: string; readonly value: string | undefined };

export interface Policy {
  readonly name: string;
  /** Where it is declared: file, line and column. */
  readonly where: string;
  readonly file: string;
  readonly scopes: readonly PolicyScope[];
  readonly mode: PolicyMode;
  readonly allow: readonly PolicyRule[];
  readonly deny: readonly PolicyRule[];
  readonly peers: (typeof PEERS_CHOICES)[number];
  /** The machine itself: its names, its addresses. */
  readonly host: (typeof HOST_CHOICES)[number];
  /** Answers with addresses that are not public, unless a rule allows the address. */
  readonly private: (typeof PRIVATE_CHOICES)[number];
  /** Whether only names are filtered, or connections, too. */
  readonly addresses: (typeof ADDRESSES_CHOICES)[number];
  /** How long an address stays allowed after it was answered. */
  readonly keepMs: number;
  /** How many names that were not queried before one wildcard allows in a minute. */
  readonly newNamesPerMinute: number;
  /** The record types that wildcards allow. */
  readonly types: ReadonlySet<number>;
  /** A client of the control socket has made it. It can only narrow what the settings say, so no label chooses it. */
  readonly isLeased?: true;
}

/** Those that decide about connections: a policy that is not enforced refuses nothing beside one that is. */
export function decidingAmong<T>(all: readonly T[], policyOf: (each: T) => Policy): readonly T[] {
  const enforced = all.filter((each) => policyOf(each).mode === "enforce");
  return enforced.length > 0 ? enforced : all;
}

export const SCOPE_FORMS = "network=NAME, project=NAME, service=NAME, container=NAME, label=KEY or label=KEY=VALUE";

/** Undefined where the text has none of the forms. */
export function parseScope(text: string): PolicyScope | undefined {
  const [, kind, rest] = /^(network|project|service|container|label)=(.+)$/s.exec(text) ?? [];
  if (kind === undefined || rest === undefined) return undefined;
  if (kind !== "label") return { kind: kind as Exclude<PolicyScope["kind"], "label">, name: rest };
  const equals = rest.indexOf("=");
  if (equals === 0) return undefined;
  return equals === -1
    ? { kind, key: rest, value: undefined }
    : { kind, key: rest.slice(0, equals), value: rest.slice(equals + 1) };
}

export function scopeText(scope: PolicyScope): string {
  if (scope.kind !== "label") return `${scope.kind}=${scope.name}`;
  return `label=${scope.key}${scope.value === undefined ? "" : `=${scope.value}`}`;
}

/** The label with which a container chooses a policy. */
export const POLICY_LABEL = "io.dns11.policy";

/** Names of policies are values of labels and of metrics. */
const NAME = /^[a-z0-9][a-z0-9_.-]{0,62}$/;
export const NAME_FORM = "use at most 63 of a-z, 0-9, dot, dash and underscore, such as agents";

export function isPolicyName(text: string): boolean {
  return NAME.test(text);
}

/**
 * A network of the Docker daemon that an enforced policy is for. Its containers are refused everything until each
 * is known.
 */
export interface ClosedNetwork {
  readonly name: string;
  /** Whatever comes from there has no source address that counts; undefined where there is none. */
  readonly bridge: string | undefined;
  readonly blocks: readonly AddressBlock[];
}

/** What programs need to connect. All others carry more data than addresses do, so wildcards allow them only where a policy says so. */
const WILDCARD_TYPES: ReadonlySet<number> = new Set([
  TYPE.A,
  TYPE.AAAA,
  TYPE.CNAME,
  TYPE.HTTPS,
  TYPE.SVCB,
  TYPE.SRV,
  TYPE.PTR,
  TYPE.MX,
]);

export const POLICY_DEFAULTS = {
  peers: "allow",
  host: "deny",
  private: "deny",
  addresses: "names",
  keepMs: 3_600_000,
  newNamesPerMinute: 60,
  types: WILDCARD_TYPES,
} as const satisfies Partial<Policy>;
