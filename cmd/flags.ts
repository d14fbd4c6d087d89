/**
 * Flags: what `dns11 run` can be told on its command line that the settings file can say, too, under the same words.
 */
import { type Command, InvalidArgumentError, Option } from "commander";

import { NO_SEARCH } from "../src/config/dns-option.ts";
import { type VariableKey, variableOf } from "../src/config/environment.ts";
import { READERS } from "../src/config/readers.ts";
import type { Key, Layer } from "../src/config/said.ts";
import { SWITCHES } from "../src/config/switches.ts";
import { NODE_ADDRESS_WORDS, NODE_WAYS } from "../src/model/kind-policy.ts";
import { LOG_LEVELS } from "../src/observe/log.ts";

/** Keys of the settings file that are a flag, and the flag's name. */
const FLAGS = {
  strict: "strict",
  only: "only",
  dns: "dns",
  "dns-opt": "dns-opt",
  "resolv-conf": "resolv-conf",
  ttl: "ttl",
  "kind.nodes": "kind",
  "kind.ip": "kind-ip",
  "kind.way": "kind-way",
  "log-level": "log-level",
} as const satisfies { readonly [K in Key]?: string };

export function addFlags(command: Command): void {
  command
    .addOption(new Option("--strict", `answer exactly as current Docker does ${or("strict")}`))
    .addOption(
      several(
        "--only <filter>",
        `serve only label=KEY[=VALUE] (all that are named) or network=NAME (any of them) ${or("only")}`,
        READERS.only,
      ),
    )
    .addOption(
      several(
        "--dns <server>",
        `ask this server, or /DOMAIN/SERVER for the names below a domain ${or("dns")}`,
        READERS.dns,
      ),
    )
    .addOption(
      several("--dns-opt <option>", `ndots:N, rotate, use-vc or timeout:N ${or("dns-opt")}`, READERS["dns-opt"]),
    )
    .addOption(new Option("--dns-search <domain>").argParser(refuseSearch).hideHelp())
    .addOption(one("--resolv-conf <path>", "the host's resolv.conf, as the engine sees paths", READERS["resolv-conf"]))
    .addOption(one("--ttl <time>", `how long names may be remembered, in seconds or as 1m ${or("ttl")}`, READERS.ttl))
    .addOption(
      several(
        "--kind <nodes>",
        `serve the pods of KIND nodes, too: auto, label=KEY[=VALUE] or name=PATTERN ${or("kind.nodes")}`,
        READERS["kind.nodes"],
      ),
    )
    .addOption(nodeAddressOption())
    .addOption(
      one("--kind-way <way>", `how pods are let in: ${NODE_WAYS.join(", ")} ${or("kind.way")}`, READERS["kind.way"]),
    )
    .addOption(
      one(
        "--log-level <level>",
        `how much to log: ${LOG_LEVELS.join(", ")} (default: "info", env: ${variableOf("log-level")})`,
        READERS["log-level"],
      ),
    );
}

export function nodeAddressOption(): Option {
  return one(
    "--kind-ip <address>",
    `where pods ask: ${NODE_ADDRESS_WORDS.join(", ")}, or an address ${or("kind.ip")}`,
    READERS["kind.ip"],
  );
}

/** On and off for every difference between the characters. */
export function addSwitches(command: Command): void {
  for (const { name, does } of SWITCHES) {
    command.addOption(new Option(`--${name}`, does).hideHelp());
    command.addOption(new Option(`--no-${name}`, `do not: ${does}`));
  }
}

/** What was said by flags. */
export function flagLayer(options: Readonly<Record<string, unknown>>): Layer {
  const flags = [...Object.entries(FLAGS), ...SWITCHES.map(({ key, name }) => [key, name] as const)];
  const said = flags.map(([key, flag]) => [key, options[new Option(`--${flag}`).attributeName()]] as const);
  return {
    source: "flag",
    said: Object.fromEntries(said.filter(([, value]) => value !== undefined)),
    where: (key: Key) => `--${(FLAGS as Partial<Record<Key, string>>)[key] ?? key.replace(/^switches\./, "")}`,
  };
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
