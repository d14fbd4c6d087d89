/**
 * DaemonDns: the list of nameservers that the engine's own settings give every container (`--dns` of dockerd, "dns" of its
 * daemon.json). Its API does not tell, and what containers' files say of it they may have written themselves; but the
 * engine is a process with a command line and a file. Both are read when it is met and no more: they count as they were
 * when it started.
 */
import { readlinkSync } from "node:fs";
import { posix } from "node:path";

import { procText } from "../../kernel/proc-text.ts";
import { addressBytes } from "../../base/model/address.ts";
import { type EngineHost, tryReadEngineFile, readEngineFile } from "../namespace/engine-host.ts";

const PROGRAM = "dockerd";
const DEFAULT_CONFIG_FILE = "/etc/docker/daemon.json";
/** Where the engine says which process it is, when the one behind the socket is the service manager. */
const PID_FILE = "/var/run/docker.pid";

/** What is read of an engine's host. */
type DaemonHost = Pick<EngineHost, "pid" | "root" | "sharesPids">;

export class DaemonDns {
  readonly #host: () => DaemonHost;
  #seen: DaemonHost | undefined;
  #servers: readonly string[] | undefined;

  constructor(host: () => DaemonHost) {
    this.#host = host;
  }

  /** Empty where there surely is no such list; undefined where nobody can tell. */
  get readServers(): readonly string[] | undefined {
    const host = this.#host();
    if (host !== this.#seen) {
      this.#seen = host;
      this.#servers = serversOf(host);
    }
    return this.#servers;
  }
}

function serversOf(host: DaemonHost): readonly string[] | undefined {
  const words = commandLine(host);
  if (words === undefined) return undefined;
  const said = valuesOf(words, "--dns");
  const inFile = serversInFile(host, valuesOf(words, "--config-file").at(-1));
  // An engine that is told in both places does not start.
  if (inFile === undefined || (said.length > 0 && inFile.length > 0)) return undefined;
  const servers = [...said, ...inFile];
  return servers.every((address) => addressBytes(address) !== undefined) ? servers : undefined;
}

function serversInFile(host: DaemonHost, named: string | undefined): readonly string[] | undefined {
  const seen = tryReadEngineFile(host, named ?? DEFAULT_CONFIG_FILE);
  if (seen.kind === "read") return dnsIn(seen.text);
  // Without being told of a file, dockerd does without one.
  return seen.kind === "absent" && named === undefined ? [] : undefined;
}

/** The engine's own words; undefined where its process is not to be found. */
function commandLine(host: DaemonHost): readonly string[] | undefined {
  const own = wordsOf(host.pid);
  if (own !== undefined || !host.sharesPids) return own;
  const pid = Number(readEngineFile(host, PID_FILE));
  const words = Number.isSafeInteger(pid) && pid > 0 ? wordsOf(pid) : undefined;
  // It is the one behind our socket if it has its sockets from the service manager.
  const takesSockets = words?.some((word) => word.includes("fd://")) === true;
  return takesSockets ? words : undefined;
}

function wordsOf(pid: number): readonly string[] | undefined {
  try {
    if (posix.basename(readlinkSync(`/proc/${pid}/exe`)).replace(/ \(deleted\)$/, "") !== PROGRAM) return undefined;
    return procText(`/proc/${pid}/cmdline`)?.split("\0");
  } catch {
    return undefined;
  }
}

/** `--flag value` and `--flag=value`. */
function valuesOf(words: readonly string[], flag: string): string[] {
  return words.flatMap((word, index) => {
    if (word === flag) return [words[index + 1] ?? ""];
    return word.startsWith(`${flag}=`) ? [word.slice(flag.length + 1)] : [];
  });
}

function dnsIn(json: string): readonly string[] | undefined {
  try {
    const settings: unknown = JSON.parse(json);
    if (typeof settings !== "object" || settings === null) return undefined;
    const dns: unknown = "dns" in settings ? settings.dns : [];
    return isListOfTexts(dns) ? dns : undefined;
  } catch {
    // An empty file is as good as none to dockerd.
    return json.trim() === "" ? [] : undefined;
  }
}

function isListOfTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}
