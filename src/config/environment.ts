/**
 * Environment: variables for the common settings, for where flags are awkward. An empty variable is ignored.
 */
import { BadSettings } from "./bad-settings.ts";
import { READERS, quoteValue } from "./readers.ts";
import { RETIRED_VARIABLES } from "./retired-names.ts";
import type { Key, SettingsLayer, LayerValues } from "./settings-layer.ts";

/** The keys that have a variable, and how its text is read. */
const VARIABLES = {
  strict: ["DNS11_STRICT", readBooleanText],
  only: ["DNS11_ONLY", (text: string) => words(text, /\s+/).map((word) => READERS.only(word))],
  "trust-image-labels": ["DNS11_TRUST_IMAGE_LABELS", readBooleanText],
  "label-servers": ["DNS11_LABEL_SERVERS", READERS["label-servers"]],
  health: ["DNS11_HEALTH", READERS.health],
  stopped: ["DNS11_STOPPED", READERS.stopped],
  ptr: ["DNS11_PTR", READERS.ptr],
  "address-order": ["DNS11_ADDRESS_ORDER", READERS["address-order"]],
  visible: ["DNS11_VISIBLE", READERS.visible],
  "default-bridge": ["DNS11_DEFAULT_BRIDGE", READERS["default-bridge"]],
  zone: ["DNS11_ZONE", (text: string) => words(text, /[\s,]+/).map((word) => READERS.zone(word))],
  "host-docker-internal": ["DNS11_HOST_DOCKER_INTERNAL", READERS["host-docker-internal"]],
  ttl: ["DNS11_TTL", READERS.ttl],
  dns: ["DNS11_DNS", (text: string) => words(text, /[\s,]+/).map((word) => READERS.dns(word))],
  "dns-opt": ["DNS11_DNS_OPT", (text: string) => words(text, /[\s,]+/).map((word) => READERS["dns-opt"](word))],
  "host-names": ["DNS11_HOST_NAMES", READERS["host-names"]],
  "host-domain": ["DNS11_HOST_DOMAIN", READERS["host-domain"]],
  "records-dir": ["DNS11_RECORDS_DIR", READERS["records-dir"]],
  "kind.nodes": ["DNS11_KIND", (text: string) => words(text, /[\s,]+/).map((word) => READERS["kind.nodes"](word))],
  "kind.ip": ["DNS11_KIND_IP", READERS["kind.ip"]],
  "kind.mode": ["DNS11_KIND_MODE", READERS["kind.mode"]],
  "rule-backend": ["DNS11_RULE_BACKEND", READERS["rule-backend"]],
  "queries.names": ["DNS11_QUERY_NAMES", READERS["queries.names"]],
  "queries.log": ["DNS11_QUERY_LOG", readBooleanText],
  "log-level": ["DNS11_LOG_LEVEL", READERS["log-level"]],
  "log-format": ["DNS11_LOG_FORMAT", READERS["log-format"]],
  "metrics.addr": ["DNS11_METRICS_ADDR", READERS["metrics.addr"]],
  "lame-duck": ["DNS11_LAME_DUCK", READERS["lame-duck"]],
  capabilities: ["DNS11_CAPABILITIES", READERS.capabilities],
  keeper: ["DNS11_KEEPER", READERS.keeper],
  answers: ["DNS11_ANSWERS", READERS.answers],
} as const satisfies { readonly [K in Key]?: readonly [string, (text: string) => LayerValues[K]] };

export type VariableKey = keyof typeof VARIABLES;

export function variableOf(key: VariableKey): string {
  return VARIABLES[key][0];
}

export function readEnvironment(environment: Readonly<Record<string, string | undefined>>): SettingsLayer {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [key, [variable, read]] of Object.entries(VARIABLES)) {
    const text = environment[variable];
    if (text === undefined || text === "") continue;
    try {
      values[key] = read(text);
    } catch (error) {
      problems.push(`${variable}: ${(error as Error).message}`);
    }
  }
  for (const [retired, successor] of Object.entries(RETIRED_VARIABLES)) {
    if ((environment[retired] ?? "") !== "") problems.push(`${retired}: is now ${successor}`);
  }
  if (problems.length > 0) throw new BadSettings(problems);
  return { source: "environment", values, where: (key) => variableOf(key as VariableKey) };
}

const YES = new Set(["true", "1", "yes", "on"]);
const NO = new Set(["false", "0", "no", "off"]);

function readBooleanText(text: string): boolean {
  const word = text.trim().toLowerCase();
  if (YES.has(word)) return true;
  if (NO.has(word)) return false;
  throw new Error(`invalid value ${quoteValue(text)}: use true or false`);
}

function words(text: string, separator: RegExp): string[] {
  return text.split(separator).filter((word) => word !== "");
}
