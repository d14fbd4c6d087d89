/**
 * The setting `policies` in a file: each policy and each of its rules with its line.
 */
import { parseType } from "../../base/dns/record-type.ts";
import {
  ADDRESSES_CHOICES,
  HOST_CHOICES,
  NAME_FORM,
  PEERS_CHOICES,
  POLICY_MODES,
  PRIVATE_CHOICES,
  type Policy,
  type PolicyScope,
  SCOPE_FORMS,
  isPolicyName,
  parseScope,
  POLICY_DEFAULTS,
} from "./model/policy.ts";
import { policyWarnings } from "./model/policy-warnings.ts";
import { type PolicyRule, type WrittenRule, readRule } from "./model/policy-rule.ts";
import { BadSettings } from "../../config/bad-settings.ts";
import { type Read, byName, count, duration, listOf, mapOf, oneOf, quoteValue } from "../../config/kinds.ts";
import { type Document, keyPlace } from "../../config/file/document.ts";
import { POLICY_LIMITS } from "./model/limits.ts";

const SECOND_MS = 1_000;

const RULES = listOf({ read: readRule });

const POLICY = mapOf({
  for: listOf({ read: readScope }),
  mode: oneOf(POLICY_MODES),
  allow: RULES,
  deny: RULES,
  peers: oneOf(PEERS_CHOICES),
  host: oneOf(HOST_CHOICES),
  private: oneOf(PRIVATE_CHOICES),
  addresses: oneOf(ADDRESSES_CHOICES),
  keep: duration(SECOND_MS, POLICY_LIMITS.keepMs, SECOND_MS),
  "new-names-per-minute": count(1, POLICY_LIMITS.newNamesPerMinute),
  types: listOf({ read: (value) => parseType(typeof value === "string" ? value : quoteValue(value)) }),
});

type WrittenPolicy = Read<typeof POLICY>;

export const WRITTEN = byName("policy", POLICY, "{NAME: {mode: audit, for: [network=NET], allow: [api.example.com]}}");

export const warnings = policyWarnings;

/** The policies of a file with their places. Throws a Fault that lists what their kinds cannot see. */
export function place(
  written: Readonly<Record<string, WrittenPolicy>>,
  document: Document,
  path: string,
): readonly Policy[] {
  const mistakes: string[] = [];
  const at = (of: readonly string[]): string => keyPlace(document, path, of);
  const names = Object.keys(written);
  if (names.length > POLICY_LIMITS.policies)
    mistakes.push(`${at(["policies"])}: has ${names.length} policies: use at most ${POLICY_LIMITS.policies}`);
  const policies = Object.entries(written).map(([name, each]): Policy => {
    const own = ["policies", name];
    if (!isPolicyName(name)) mistakes.push(`${at(own)}: invalid name of a policy: ${NAME_FORM}`);
    const { mode } = each;
    // What it means to leave it out would surprise one half of its readers.
    if (mode === undefined)
      mistakes.push(`${at(own)}: has no mode: set mode: audit, which refuses nothing, learn or enforce`);
    for (const [key, max] of LENGTHS) {
      const length = each[key]?.length ?? 0;
      if (length > max) mistakes.push(`${at([...own, key])}: has ${length} entries: use at most ${max}`);
    }
    const placed = (key: "allow" | "deny"): PolicyRule[] =>
      (each[key] ?? []).map((rule, index) => placedRule(rule, document.positionOf([...own, key, index]).line));
    const blocks = [...(each.allow ?? []), ...(each.deny ?? [])].filter(({ block }) => block !== undefined).length;
    if (each.addresses === "enforce" && blocks > POLICY_LIMITS.enforcedBlocks)
      mistakes.push(
        `${at(own)}: has ${blocks} rules for addresses: use at most ${POLICY_LIMITS.enforcedBlocks} with addresses: enforce`,
      );
    const { line, column } = document.keyPositionOf(own);
    return {
      name,
      where: `${path}:${line}:${column}`,
      file: path,
      scopes: each.for ?? [],
      mode: mode ?? "enforce",
      allow: placed("allow"),
      deny: placed("deny"),
      peers: each.peers ?? POLICY_DEFAULTS.peers,
      host: each.host ?? POLICY_DEFAULTS.host,
      private: each.private ?? POLICY_DEFAULTS.private,
      addresses: each.addresses ?? POLICY_DEFAULTS.addresses,
      keepMs: each.keep ?? POLICY_DEFAULTS.keepMs,
      newNamesPerMinute: each["new-names-per-minute"] ?? POLICY_DEFAULTS.newNamesPerMinute,
      types: each.types === undefined ? POLICY_DEFAULTS.types : new Set(each.types),
    };
  });
  BadSettings.throwAny(mistakes);
  return policies;
}

const LENGTHS = [
  ["for", POLICY_LIMITS.scopes],
  ["allow", POLICY_LIMITS.rules],
  ["deny", POLICY_LIMITS.rules],
  ["types", POLICY_LIMITS.types],
] as const;

function placedRule(rule: WrittenRule, line: number): PolicyRule {
  return { ...rule, line };
}

function readScope(value: unknown): PolicyScope {
  const scope = typeof value === "string" ? parseScope(value) : undefined;
  if (scope !== undefined) return scope;
  throw new Error(`invalid choice of containers ${quoteValue(value)}: use ${SCOPE_FORMS}`);
}
