/**
 * Flags: what `dns11 run` can be told on its command line that the settings file can say, too, under the same words.
 */
import { type Command, InvalidArgumentError, Option } from "commander";

import { NO_SEARCH } from "../src/config/dns-option.ts";
import { type VariableKey, variableOf } from "../src/config/environment.ts";
import { READERS } from "../src/config/readers.ts";
import type { Key, SettingsLayer } from "../src/config/settings-layer.ts";
import { METRICS_ADDRESS } from "../src/config/settings.ts";
import { RETIRED_FLAGS, RETIRED_SWITCHES } from "../src/config/retired-names.ts";
import { SWITCHES } from "../src/config/switches.ts";
import { QUERY_NAMES } from "../src/base/model/asked-query.ts";
import { NODE_ADDRESS_WORDS, KIND_MODES } from "../src/base/model/kind-policy.ts";
import { LABEL_SERVERS } from "../src/base/model/label-policy.ts";
import { RULE_BACKEND_SETTINGS } from "../src/base/model/rule-backend.ts";
import { LOG_FORMATS, LOG_LEVELS } from "../src/base/log/log.ts";

/** Keys of the settings file that are a flag, and the flag's name. */
const FLAGS = {
  strict: "strict",
  only: "only",
  "trust-image-labels": "trust-image-labels",
  "label-servers": "label-servers",
  dns: "dns",
  "dns-opt": "dns-opt",
  "resolv-conf": "resolv-conf",
  ttl: "ttl",
  "kind.nodes": "kind",
  "kind.ip": "kind-ip",
  "kind.mode": "kind-mode",
  "rule-backend": "rule-backend",
  "queries.names": "query-names",
  "queries.log": "query-log",
  "log-level": "log-level",
  "log-format": "log-format",
  "metrics.addr": "metrics-addr",
  "lame-duck": "lame-duck",
  capabilities: "capabilities",
  keeper: "keeper",
} as const satisfies { readonly [K in Key]?: string };

export type FlagKey = keyof typeof FLAGS;

/** What makes sense where there is no engine. */
export const IN_NODE_FLAGS: readonly FlagKey[] = [
  "strict",
  "dns",
  "dns-opt",
  "ttl",
  "kind.ip",
  "kind.mode",
  "rule-backend",
  "keeper",
  "queries.names",
  "queries.log",
  "log-level",
  "log-format",
];

/** All of them, or those that make sense. */
export function addFlags(command: Command, keys: readonly FlagKey[] = Object.keys(FLAGS) as FlagKey[]): void {
  for (const key of keys) command.addOption(optionOf(key));
  command.addOption(new Option("--dns-search <domain>").argParser(refuseSearch).hideHelp());
  for (const [flag, successor] of Object.entries(RETIRED_FLAGS)) rejectRetired(command, `${flag} [value]`, successor);
}

function rejectRetired(command: Command, flag: string, successor: string): void {
  const option = new Option(`--${flag}`).hideHelp();
  command.addOption(option);
  command.on(`option:${option.name()}`, () => command.error(`error: --${option.name()} is now --${successor}`));
}

function optionOf(key: FlagKey): Option {
  switch (key) {
    case "strict":
      return new Option("--strict", `answer exactly as current Docker does ${or(key)}`);
    case "only":
      return several(
        "--only <filter>",
        `serve only label=KEY[=VALUE] (all that are named) or network=NAME (any of them) ${or(key)}`,
        READERS.only,
      );
    case "trust-image-labels":
      return new Option(
        "--trust-image-labels",
        `let labels baked into images say what labels of containers may ${or(key)}`,
      );
    case "label-servers":
      return one(
        "--label-servers <place>",
        `where servers named by labels are asked from: ${LABEL_SERVERS.join(", ")} ${or(key)}`,
        READERS["label-servers"],
      );
    case "dns":
      return several(
        "--dns <server>",
        `ask this server, or /DOMAIN/SERVER for the names below a domain ${or(key)}`,
        READERS.dns,
      );
    case "dns-opt":
      return several("--dns-opt <option>", `ndots:N, rotate, use-vc or timeout:N ${or(key)}`, READERS["dns-opt"]);
    case "resolv-conf":
      return one("--resolv-conf <path>", "the host's resolv.conf, as the engine sees paths", READERS["resolv-conf"]);
    case "ttl":
      return one("--ttl <time>", `how long names may be remembered, in seconds or as 1m ${or(key)}`, READERS.ttl);
    case "kind.nodes":
      return several(
        "--kind <nodes>",
        `serve the pods of KIND nodes, too: auto, label=KEY[=VALUE] or name=PATTERN ${or(key)}`,
        READERS["kind.nodes"],
      );
    case "kind.ip":
      return one(
        "--kind-ip <address>",
        `where pods ask: ${NODE_ADDRESS_WORDS.join(", ")}, or an address ${or(key)}`,
        READERS["kind.ip"],
      );
    case "kind.mode":
      return one("--kind-mode <mode>", `how pods reach dns11: ${KIND_MODES.join(", ")} ${or(key)}`, READERS["kind.mode"]);
    case "rule-backend":
      return one(
        "--rule-backend <backend>",
        `how redirect rules are installed: ${RULE_BACKEND_SETTINGS.join(", ")} ${or(key)}`,
        READERS["rule-backend"],
      );
    case "queries.names":
      return one(
        "--query-names <names>",
        `what is kept of the last queries: ${QUERY_NAMES.join(", ")} ${or(key)}`,
        READERS["queries.names"],
      );
    case "queries.log":
      return new Option("--query-log", `write a line into the log for each query ${or(key)}`);
    case "log-level":
      return one(
        "--log-level <level>",
        `how much to log: ${LOG_LEVELS.join(", ")} (default: "info", env: ${variableOf(key)})`,
        READERS["log-level"],
      );
    case "log-format":
      return one(
        "--log-format <format>",
        `how lines look: ${LOG_FORMATS.join(", ")} (default: "auto", env: ${variableOf(key)})`,
        READERS["log-format"],
      );
    case "metrics.addr":
      return one(
        "--metrics-addr <address>",
        `where metrics are served, or off (default: "${METRICS_ADDRESS}", env: ${variableOf(key)})`,
        READERS["metrics.addr"],
      );
    case "lame-duck":
      return one(
        "--lame-duck <time>",
        `how long to answer on after SIGTERM, no longer ready (default: 0, env: ${variableOf(key)})`,
        READERS["lame-duck"],
      );
    case "capabilities":
      return one(
        "--capabilities <drop|keep>",
        `drop capabilities that are not needed, or keep them (default: "drop", env: ${variableOf(key)})`,
        READERS.capabilities,
      );
    case "keeper":
      return one(
        "--keeper <on|off>",
        `on: a second process hands containers back when this one is killed or hangs; off (default: "on", env: ${variableOf(key)})`,
        READERS.keeper,
      );
  }
}

/** On and off for every difference between the characters. */
export function addSwitches(command: Command): void {
  for (const { name, does } of SWITCHES) {
    command.addOption(new Option(`--${name}`, does).hideHelp());
    command.addOption(new Option(`--no-${name}`, `do not: ${does}`));
  }
  for (const [flag, successor] of Object.entries(RETIRED_SWITCHES)) {
    rejectRetired(command, flag, successor);
    rejectRetired(command, `no-${flag}`, `no-${successor}`);
  }
}

/** What was said by flags. */
export function flagLayer(options: Readonly<Record<string, unknown>>): SettingsLayer {
  const flags = [...Object.entries(FLAGS), ...SWITCHES.map(({ key, name }) => [key, name] as const)];
  const said = flags.map(([key, flag]) => [key, options[new Option(`--${flag}`).attributeName()]] as const);
  return {
    source: "flag",
    values: Object.fromEntries(said.filter(([, value]) => value !== undefined)),
    where: (key: Key) => `--${(FLAGS as Partial<Record<Key, string>>)[key] ?? key.replace(/^switches\./, "")}`,
  };
}

/** The flag that says the same as a key, with its dashes. */
export function flagOf(key: Key): string | undefined {
  const name = (FLAGS as Partial<Record<Key, string>>)[key] ?? SWITCHES.find((each) => each.key === key)?.name;
  return name === undefined ? undefined : `--${name}`;
}

function or(key: VariableKey): string {
  return `(env: ${variableOf(key)})`;
}

function one(flags: string, description: string, read: (text: string) => unknown): Option {
  return new Option(flags, description).argParser((text) => explained(read, text));
}

/** A flag that can be given again. */
function several(flags: string, description: string, read: (text: string) => unknown): Option {
  return new Option(flags, description).argParser((text, before: readonly unknown[] | undefined) => [
    ...(before ?? []),
    explained(read, text),
  ]);
}

function explained(read: (text: string) => unknown, text: string): unknown {
  try {
    return read(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}

function refuseSearch(): never {
  throw new InvalidArgumentError(`It is not offered: ${NO_SEARCH}.`);
}
