/**
 * dns11 run: serves until it is told to stop.
 */
import { type Command, InvalidArgumentError, Option } from "commander";

import { DEFAULT_STATE_DIR, type OnlyFilter, type RunSettings, parseOnly } from "../src/config/settings.ts";
import { BETTER, type Behaviour, STRICT } from "../src/model/behaviour.ts";
import { UPSTREAM_DEFAULTS } from "../src/model/upstream-policy.ts";
import { LOG_LEVELS, type LogLevel, createLog } from "../src/observe/log.ts";
import { onThisPlatform } from "./platform.ts";
import { table } from "./table.ts";

interface RunOptions {
  readonly host?: string;
  readonly strict?: boolean;
  readonly only: readonly OnlyFilter[];
  readonly dryRun?: boolean;
  readonly json?: boolean;
  readonly stateDir: string;
  readonly enginePid?: number;
  readonly resolvConf?: string;
  readonly batch: boolean;
  readonly logLevel: LogLevel;
  readonly ttl?: number;
  readonly localNodata?: boolean;
  readonly negativeSoa?: boolean;
  readonly edns?: boolean;
  readonly longQueries?: boolean;
  readonly foldCase?: boolean;
  readonly reverseIpv6?: boolean;
  readonly skipDanglingLinks?: boolean;
  readonly pipeline?: boolean;
  readonly compress?: boolean;
  readonly failover?: boolean;
  readonly cache?: boolean;
  readonly prefetch?: boolean;
  readonly stale?: boolean;
  readonly merge?: boolean;
  readonly hedge?: boolean;
  readonly fit?: boolean;
  readonly explainFailures?: boolean;
  readonly loopGuard?: boolean;
  readonly specialNames?: boolean;
  readonly followHost?: boolean;
}

/** A switch of the character: its flag, what it does, and where it stands in Behaviour. */
const SWITCHES: readonly (readonly [string, string, keyof Behaviour, keyof RunOptions])[] = [
  [
    "local-nodata",
    "empty answers for other types of known names, instead of asking upstream",
    "answersAllTypes",
    "localNodata",
  ],
  ["negative-soa", "an SOA in empty answers, so that clients may remember them", "hasNegativeSoa", "negativeSoa"],
  ["edns", "answer EDNS as RFC 6891 says", "speaksEdns", "edns"],
  ["long-queries", "read UDP queries over 512 octets", "readsLongQueries", "longQueries"],
  ["fold-case", "compare links, network suffixes and reverse names without letter case", "foldsCase", "foldCase"],
  ["reverse-ipv6", "answer ip6.arpa for every address", "reversesAllIpv6", "reverseIpv6"],
  ["skip-dangling-links", "a link to nobody hides nobody's name", "skipsDanglingLinks", "skipDanglingLinks"],
  ["pipeline", "work on several queries of a TCP connection at once", "pipelines", "pipeline"],
  ["compress", "compress owner names always, not only to fit more", "compresses", "compress"],
  [
    "failover",
    "ask within one budget of time, healthy servers first; needed by all that follow",
    "failsOver",
    "failover",
  ],
  ["cache", "keep servers' replies for as long as they live", "caches", "cache"],
  ["prefetch", "ask popular replies anew before they are over", "prefetches", "prefetch"],
  ["stale", "let replies that are over stand in for servers that do not answer", "servesStale", "stale"],
  ["merge", "ask identical questions in flight once", "merges", "merge"],
  ["hedge", "ask a second server when the first is slower than usual", "hedges", "hedge"],
  ["fit", "fetch truncated replies whole, and truncate for whoever asked", "fitsReplies", "fit"],
  ["explain-failures", "say in failures why they are (RFC 8914)", "explainsFailures", "explainFailures"],
  ["loop-guard", "notice servers that lead back to us", "guardsLoops", "loopGuard"],
  ["special-names", "answer special names (RFC 6761) here", "answersSpecialNames", "specialNames"],
  ["follow-host", "follow changes of the host's resolv.conf at once", "followsHost", "followHost"],
];

export function addRun(program: Command): void {
  const command = program
    .command("run")
    .description("Serve names on 127.0.0.11 in every container that has Docker's resolver, until told to stop")
    .addOption(new Option("-H, --host <address>", "the engine's socket, as the docker command reads it"))
    .addOption(new Option("--strict", "answer exactly as current Docker does"))
    .option(
      "--only <filter>",
      "serve only label=KEY[=VALUE] (all that are named) or network=NAME (any of them)",
      (text: string, before: readonly OnlyFilter[]) => [...before, readOnly(text)],
      [],
    )
    .option("--dry-run", "say what would be done with each container, and do nothing")
    .option("--json", "with --dry-run: as JSON")
    .addOption(stateDirOption())
    .option("--engine-pid <pid>", "the engine's process, where its socket does not tell", readPositive)
    .option("--resolv-conf <path>", "the host's resolv.conf, as the engine sees paths")
    .addOption(new Option("--ttl <seconds>", "how long names may be remembered").argParser(readTtl).env("DNS11_TTL"))
    .addOption(
      new Option("--log-level <level>", "how much to log").choices(LOG_LEVELS).default("info").env("DNS11_LOG_LEVEL"),
    );
  for (const [flag, does] of SWITCHES) {
    command.addOption(new Option(`--${flag}`, does).hideHelp());
    command.addOption(new Option(`--no-${flag}`, `do not: ${does}`));
  }
  command.option("--no-batch", "answer each packet by itself (for comparison)");
  command.action(async (options: RunOptions) => await run(options));
}

export function stateDirOption(): Option {
  return new Option("--state-dir <path>", "where lock and control socket live")
    .default(DEFAULT_STATE_DIR)
    .env("DNS11_STATE_DIR");
}

async function run(options: RunOptions): Promise<void> {
  const settings = settingsOf(options);
  const { Daemon } = await onThisPlatform(async () => await import("../src/daemon/daemon.ts"));
  const daemon = new Daemon(settings, createLog(settings.logLevel));
  if (options.dryRun === true) {
    const containers = await daemon.preview();
    process.stdout.write(options.json === true ? `${JSON.stringify(containers)}\n` : previewText(containers));
    return;
  }
  await daemon.run(untilSignalled());
}

function settingsOf(options: RunOptions): RunSettings {
  const base = options.strict === true ? STRICT : BETTER;
  const switched = SWITCHES.map(([, , key, option]) => [key, options[option] ?? base[key]]);
  return {
    host: options.host,
    isStrict: options.strict === true,
    behaviour: {
      ...base,
      ...(Object.fromEntries(switched) as Partial<Behaviour>),
      ttlSeconds: options.ttl ?? base.ttlSeconds,
    },
    upstream: UPSTREAM_DEFAULTS,
    routes: { everyone: [], networks: new Map() },
    only: options.only,
    stateDir: options.stateDir,
    enginePid: options.enginePid,
    resolvConf: options.resolvConf,
    isBatching: options.batch,
    logLevel: options.logLevel,
  };
}

/** The first SIGTERM or SIGINT asks for a good end; a second one does not wait for it. */
function untilSignalled(): AbortSignal {
  const controller = new AbortController();
  const onSignal = (): void => {
    if (controller.signal.aborted) process.exit(1);
    controller.abort();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  return controller.signal;
}

function previewText(
  containers: readonly {
    readonly name: string;
    readonly state: string;
    readonly reason?: string;
    readonly warning?: string;
    readonly networks: readonly string[];
  }[],
): string {
  const rows = containers.map(({ name, state, reason, warning, networks }) => [
    name,
    state === "left-alone" ? "leave alone" : "serve",
    networks.join(","),
    [reason, warning].filter(Boolean).join("; "),
  ]);
  return table(["CONTAINER", "WOULD", "NETWORKS", "WHY"], rows);
}

function readOnly(text: string): OnlyFilter {
  const filter = parseOnly(text);
  if (filter === undefined) throw new InvalidArgumentError("It is label=KEY, label=KEY=VALUE or network=NAME.");
  return filter;
}

function readPositive(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new InvalidArgumentError("It is a process number.");
  return Number(text);
}

function readTtl(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError("It is a number of seconds, from 0 to 999999.");
  return Number(text);
}
