/**
 * DaemonDns: whether the engine's own settings give every container a list of nameservers (`--dns` of dockerd, "dns" of
 * its daemon.json). Its API does not tell, and engines before 26 write it nowhere; but they are a process with a command
 * line and a file. Both are read when the engine is met and no more: they count as they were when it started.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { posix } from "node:path";

import { type EngineHost, readEngineFile } from "../namespace/engine-host.ts";

const PROGRAM = "dockerd";
const USUAL_SETTINGS = "/etc/docker/daemon.json";
/** Where the engine says which process it is, when the one behind the socket is the service manager. */
const PID_FILE = "/var/run/docker.pid";

/** What is read of an engine's host. */
type SeenHost = Pick<EngineHost, "pid" | "root" | "sharesPids">;

export class DaemonDns {
  readonly #host: () => SeenHost;
  #seen: SeenHost | undefined;
  #isKnownNone = false;

  constructor(host: () => SeenHost) {
    this.#host = host;
  }

  /** Whether there surely is no such list; false also where nobody can tell. */
  get isKnownNone(): boolean {
    const host = this.#host();
    if (host !== this.#seen) {
      this.#seen = host;
      this.#isKnownNone = isKnownNone(host);
    }
    return this.#isKnownNone;
  }
}

function isKnownNone(host: SeenHost): boolean {
  const words = commandLine(host);
  if (words === undefined || valuesOf(words, "--dns").length > 0) return false;
  const named = valuesOf(words, "--config-file").at(-1);
  const text = readEngineFile(host, named ?? USUAL_SETTINGS);
  // Without being told of a file, dockerd does without one.
  if (text === undefined) return named === undefined;
  return isWithoutDns(text);
}

/** The engine's own words; undefined where its process is not to be found. */
function commandLine(host: SeenHost): readonly string[] | undefined {
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
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
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

function isWithoutDns(json: string): boolean {
  try {
    const settings: unknown = JSON.parse(json);
    if (typeof settings !== "object" || settings === null) return false;
    const dns = "dns" in settings ? settings.dns : [];
    return Array.isArray(dns) && dns.length === 0;
  } catch {
    // An empty file is as good as none to dockerd.
    return json.trim() === "";
  }
}
