/**
 * Flags: the flags of `dns11 run` that correspond to keys of the settings file.
 */
import { type Command, InvalidArgumentError, Option } from "commander";

import { NO_SEARCH } from "../src/config/dns-option.ts";
import { type VariableKey, variableOf } from "../src/config/environment.ts";
import { READERS } from "../src/config/readers.ts";
import { mergeSettings } from "../src/config/merge-settings.ts";
import type { Key, SettingsLayer } from "../src/config/settings-layer.ts";
import { RETIRED_FLAGS, RETIRED_SWITCHES } from "../src/config/retired-names.ts";
import { SWITCHES } from "../src/config/switches.ts";
import { QUERY_NAMES } from "../src/base/model/query-record.ts";
import { HOST_MEANS } from "../src/base/model/host-policy.ts";
import { NODE_ADDRESS_WORDS, KIND_MODES } from "../src/base/model/kind-policy.ts";
import { HEALTH_POLICIES } from "../src/base/model/health-policy.ts";
import { LABEL_SERVERS } from "../src/base/model/label-policy.ts";
import { ADDRESS_ORDERS, PTR_FORMS } from "../src/base/model/name-choices.ts";
import { STOPPED_POLICIES } from "../src/base/model/stopped-policy.ts";
import { VISIBLE_SETTINGS } from "../src/base/model/visible-setting.ts";
import { RULE_BACKEND_SETTINGS } from "../src/base/model/rule-backend.ts";
import { LOG_FORMATS, LOG_LEVELS } from "../src/base/model/log-choices.ts";

/** The keys of the settings file that have a flag, and its name. */
const FLAGS = {
  strict: "strict",
  only: "only",
  "trust-image-labels": "trust-image-labels",
  "label-servers": "label-servers",
  visible: "visible",
  "default-bridge": "default-bridge",
  "host-docker-internal": "host-docker-internal",
  zone: "zone",
  dns: "dns",
  "dns-opt": "dns-opt",
  "resolv-conf": "resolv-conf",
  "host-names": "host-names",
  "host-domain": "host-domain",
  health: "health",
  stopped: "stopped",
  ptr: "ptr",
  "address-order": "address-order",
  ttl: "ttl",
  "records-dir": "records-dir",
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
  answers: "answers",
} as const satisfies { readonly [K in Key]?: string };

const DEFAULTS = mergeSettings([]).origins;
const SWITCH_GROUP = "Differences from Docker (--strict turns all of them off):";

export type FlagKey = keyof typeof FLAGS;

/** The flags that apply without an engine. */
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

/** Adds all flags, or those of some keys. */
export function addFlags(command: Command, keys: readonly FlagKey[] = Object.keys(FLAGS) as FlagKey[]): void {
  for (const key of keys) command.addOption(optionOf(key));
  command.addOption(new Option("--dns-search <domain>").argParser(rejectDnsSearch).hideHelp());
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
      return new Option("--strict", `answer exactly as current Docker does ${envNote(key)}`);
    case "only":
      return listOption(
        "--only <filter>",
        `serve only containers with label=KEY[=VALUE] or network=NAME; if repeated: every label and at least one network must match ${listNote(key)}`,
        READERS.only,
      );
    case "trust-image-labels":
      return new Option(
        "--trust-image-labels",
        `honour io.dns11 labels of images, not only of containers ${envNote(key)}`,
      );
    case "label-servers":
      return valueOption(
        "--label-servers <source>",
        `where servers from labels are queried from: ${LABEL_SERVERS.join(", ")} ${valueNote(key)}`,
        READERS["label-servers"],
      );
    case "visible":
      return valueOption(
        "--visible <names>",
        `whose names a container resolves: ${VISIBLE_SETTINGS.join(", ")}; beyond its own networks, as NAME.NETWORK ${valueNote(key)}`,
        READERS.visible,
      );
    case "default-bridge":
      return valueOption(
        "--default-bridge <off|names>",
        `serve containers on the default bridge, too, so that they resolve each other ${valueNote(key)}`,
        READERS["default-bridge"],
      );
    case "host-docker-internal":
      return valueOption(
        "--host-docker-internal <off|gateway>",
        `let containers without such an entry resolve host.docker.internal to the host's address on the default bridge ${valueNote(key)}`,
        READERS["host-docker-internal"],
      );
    case "zone":
      return listOption(
        "--zone <domain>",
        `answer SERVICE.PROJECT.svc.DOMAIN and the other names of the Kubernetes DNS schema ${listNote(key)}`,
        READERS.zone,
      );
    case "dns":
      return listOption(
        "--dns <server>",
        `upstream server, or /DOMAIN/SERVER for the names of a domain ${listNote(key)}`,
        READERS.dns,
      );
    case "dns-opt":
      return listOption(
        "--dns-opt <option>",
        `resolver option: ndots:N, rotate, use-vc or timeout:N ${listNote(key)}`,
        READERS["dns-opt"],
      );
    case "resolv-conf":
      return valueOption(
        "--resolv-conf <path>",
        "path of the host's resolv.conf, as seen by dockerd (default: the one that dockerd uses)",
        READERS["resolv-conf"],
      );
    case "host-names":
      return valueOption(
        "--host-names [means]",
        `resolve container names on the host, as in web.docker: ${HOST_MEANS.join(", ")} ${valueNote(key)}`,
        READERS["host-names"],
      ).preset("auto");
    case "host-domain":
      return valueOption(
        "--host-domain <domain>",
        `domain of container names on the host ${valueNote(key)}`,
        READERS["host-domain"],
      );
    case "health":
      return valueOption(
        "--health <policy>",
        `whether unhealthy containers share names with others: ${HEALTH_POLICIES.join(", ")} ${valueNote(key)}`,
        READERS.health,
      );
    case "stopped":
      return valueOption(
        "--stopped <answer>",
        `what names of stopped containers mean: ${STOPPED_POLICIES.join(", ")} ${valueNote(key)}`,
        READERS.stopped,
      );
    case "ptr":
      return valueOption(
        "--ptr <form>",
        `what addresses of containers point to: ${PTR_FORMS.join(", ")} ${valueNote(key)}`,
        READERS.ptr,
      );
    case "address-order":
      return valueOption(
        "--address-order <order>",
        `the order of several addresses of a name: ${ADDRESS_ORDERS.join(", ")} ${valueNote(key)}`,
        READERS["address-order"],
      );
    case "ttl":
      return valueOption("--ttl <time>", `TTL of container names, such as 5s or 1m ${valueNote(key)}`, READERS.ttl);
    case "records-dir":
      return valueOption(
        "--records-dir <folder>",
        `folder with files of records, in YAML or the format of /etc/hosts, followed while dns11 runs ${envNote(key)}`,
        READERS["records-dir"],
      );
    case "kind.nodes":
      return listOption(
        "--kind <nodes>",
        `serve the pods of KIND nodes: auto, label=KEY[=VALUE] or name=PATTERN ${listNote(key)}`,
        READERS["kind.nodes"],
      );
    case "kind.ip":
      return valueOption(
        "--kind-ip <address>",
        `nameserver address for pods: ${NODE_ADDRESS_WORDS.join(", ")}, or an IP address ${valueNote(key)}`,
        READERS["kind.ip"],
      );
    case "kind.mode":
      return valueOption(
        "--kind-mode <mode>",
        `how pods reach dns11: ${KIND_MODES.join(", ")} ${valueNote(key)}`,
        READERS["kind.mode"],
      );
    case "rule-backend":
      return valueOption(
        "--rule-backend <backend>",
        `how redirect rules are installed: ${RULE_BACKEND_SETTINGS.join(", ")} ${valueNote(key)}`,
        READERS["rule-backend"],
      );
    case "queries.names":
      return valueOption(
        "--query-names <names>",
        `names in the query history: ${QUERY_NAMES.join(", ")}; off: no history ${valueNote(key)}`,
        READERS["queries.names"],
      );
    case "queries.log":
      return new Option("--query-log", `log every query ${envNote(key)}`);
    case "log-level":
      return valueOption(
        "--log-level <level>",
        `log level: ${LOG_LEVELS.join(", ")} ${valueNote(key)}`,
        READERS["log-level"],
      );
    case "log-format":
      return valueOption(
        "--log-format <format>",
        `log format: ${LOG_FORMATS.join(", ")} ${valueNote(key)}`,
        READERS["log-format"],
      );
    case "metrics.addr":
      return valueOption(
        "--metrics-addr <address>",
        `address of the metrics endpoint (IP:PORT), or off ${valueNote(key)}`,
        READERS["metrics.addr"],
      );
    case "lame-duck":
      return valueOption(
        "--lame-duck <time>",
        `how long to keep answering after SIGTERM while /ready already fails ${valueNote(key)}`,
        READERS["lame-duck"],
      );
    case "capabilities":
      return valueOption(
        "--capabilities <drop|keep>",
        `drop unneeded capabilities, or keep them ${valueNote(key)}`,
        READERS.capabilities,
      );
    case "keeper":
      return valueOption(
        "--keeper <on|off>",
        `run a second process that removes dns11's rules if this one dies or hangs, so that Docker's resolver answers again ${valueNote(key)}`,
        READERS.keeper,
      );
    case "answers":
      return valueOption(
        "--answers <auto|kernel|process>",
        `who answers plain queries for local names again: an eBPF program that repeats this process's answers (auto: where that works), or this process ${valueNote(key)}`,
        READERS.answers,
      );
  }
}

/** A pair of flags for every switch: `--no-NAME` in the help, and `--NAME`, which strict mode needs. */
export function addSwitches(command: Command): void {
  for (const { name, description, negation } of SWITCHES) {
    command.addOption(new Option(`--${name}`, description).hideHelp());
    command.addOption(new Option(`--no-${name}`, negation).helpGroup(SWITCH_GROUP));
  }
  for (const [flag, successor] of Object.entries(RETIRED_SWITCHES)) {
    rejectRetired(command, flag, successor);
    rejectRetired(command, `no-${flag}`, `no-${successor}`);
  }
}

/** The layer of the settings given as flags. */
export function flagLayer(options: Readonly<Record<string, unknown>>): SettingsLayer {
  const flags = [...Object.entries(FLAGS), ...SWITCHES.map(({ key, name }) => [key, name] as const)];
  const values = flags.map(([key, flag]) => [key, options[new Option(`--${flag}`).attributeName()]] as const);
  return {
    source: "flag",
    values: Object.fromEntries(values.filter(([, value]) => value !== undefined)),
    where: (key: Key) => `--${(FLAGS as Partial<Record<Key, string>>)[key] ?? key.replace(/^switches\./, "")}`,
  };
}

/** The flag of a key, with its dashes. */
export function flagOf(key: Key): string | undefined {
  const name = (FLAGS as Partial<Record<Key, string>>)[key] ?? SWITCHES.find((each) => each.key === key)?.name;
  return name === undefined ? undefined : `--${name}`;
}

function listNote(key: VariableKey): string {
  return `(repeatable, env: ${variableOf(key)})`;
}

function envNote(key: VariableKey): string {
  return `(env: ${variableOf(key)})`;
}

/** The default and the variable of a flag with a value. */
function valueNote(key: VariableKey): string {
  return `(default: ${JSON.stringify(DEFAULTS[key]?.value)}, env: ${variableOf(key)})`;
}

function valueOption(flags: string, description: string, read: (text: string) => unknown): Option {
  return new Option(flags, description).argParser((text) => readOrReject(read, text));
}

/** A flag that can be repeated. */
function listOption(flags: string, description: string, read: (text: string) => unknown): Option {
  return new Option(flags, description).argParser((text, before: readonly unknown[] | undefined) => [
    ...(before ?? []),
    readOrReject(read, text),
  ]);
}

function readOrReject(read: (text: string) => unknown, text: string): unknown {
  try {
    return read(text);
  } catch (error) {
    // Commander has quoted the value before: only what to use is left.
    const message = (error as Error).message.replace(/^invalid .*?: (use .*)$/s, "$1");
    throw new InvalidArgumentError(`${message.charAt(0).toUpperCase()}${message.slice(1)}.`);
  }
}

function rejectDnsSearch(): never {
  throw new InvalidArgumentError(`Not supported: ${NO_SEARCH}.`);
}
