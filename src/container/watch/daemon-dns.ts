/**
 * DaemonDns: the nameservers that the engine's own settings give every container (`--dns` of dockerd, "dns" in its
 * daemon.json). The API does not report them, and containers can forge what their files say about them. So they are
 * read from the engine's command line and configuration file, once for each engine process, because the engine itself
 * applies them as they were at its start.
 */
import { readlinkSync } from "node:fs";
import { posix } from "node:path";

import { procText } from "../../kernel/process.ts";
import { addressBytes } from "../../base/model/address.ts";
import { type EngineHost, tryReadEngineFile, readEngineFile } from "../namespace/engine-host.ts";

const PROGRAM = "dockerd";
const DEFAULT_CONFIG_FILE = "/etc/docker/daemon.json";
/** The engine's PID file, used when the service manager holds the socket. */
const PID_FILE = "/var/run/docker.pid";

type DaemonHost = Pick<EngineHost, "pid" | "root" | "sharesPids">;

export class DaemonDns {
  readonly #host: () => DaemonHost;
  #readFrom: DaemonHost | undefined;
  #servers: readonly string[] | undefined;

  constructor(host: () => DaemonHost) {
    this.#host = host;
  }

  /** Empty if there is no such list; undefined if that cannot be determined. */
  readServers(): readonly string[] | undefined {
    const host = this.#host();
    if (host !== this.#readFrom) {
      this.#readFrom = host;
      this.#servers = serversOf(host);
    }
    return this.#servers;
  }
}

function serversOf(host: DaemonHost): readonly string[] | undefined {
  const args = commandLine(host);
  if (args === undefined) return undefined;
  const fromFlags = valuesOf(args, "--dns");
  const fromFile = serversInFile(host, valuesOf(args, "--config-file").at(-1));
  // dockerd does not start if the list is in both places.
  if (fromFile === undefined || (fromFlags.length > 0 && fromFile.length > 0)) return undefined;
  const servers = [...fromFlags, ...fromFile];
  return servers.every((address) => addressBytes(address) !== undefined) ? servers : undefined;
}

function serversInFile(host: DaemonHost, configFile: string | undefined): readonly string[] | undefined {
  const file = tryReadEngineFile(host, configFile ?? DEFAULT_CONFIG_FILE);
  if (file.kind === "read") return dnsIn(file.text);
  // Without --config-file, dockerd works without a file.
  return file.kind === "absent" && configFile === undefined ? [] : undefined;
}

/** The engine's arguments; undefined if its process cannot be found. */
function commandLine(host: DaemonHost): readonly string[] | undefined {
  const own = argsOf(host.pid);
  if (own !== undefined || !host.sharesPids) return own;
  const pid = Number(readEngineFile(host, PID_FILE));
  const args = Number.isSafeInteger(pid) && pid > 0 ? argsOf(pid) : undefined;
  // It is our engine if it takes its sockets from the service manager.
  const takesSockets = args?.some((arg) => arg.includes("fd://")) === true;
  return takesSockets ? args : undefined;
}

function argsOf(pid: number): readonly string[] | undefined {
  try {
    if (posix.basename(readlinkSync(`/proc/${pid}/exe`)).replace(/ \(deleted\)$/, "") !== PROGRAM) return undefined;
    const words = procText(`/proc/${pid}/cmdline`);
    // A program that is just being started has none yet.
    return words === "" ? undefined : words?.split("\0");
  } catch {
    return undefined;
  }
}

/** `--flag value` and `--flag=value`. */
function valuesOf(args: readonly string[], flag: string): string[] {
  return args.flatMap((arg, index) => {
    if (arg === flag) return [args[index + 1] ?? ""];
    return arg.startsWith(`${flag}=`) ? [arg.slice(flag.length + 1)] : [];
  });
}

function dnsIn(json: string): readonly string[] | undefined {
  try {
    const settings: unknown = JSON.parse(json);
    if (typeof settings !== "object" || settings === null) return undefined;
    const dns: unknown = "dns" in settings ? settings.dns : [];
    return isStringArray(dns) ? dns : undefined;
  } catch {
    // dockerd treats an empty file like a missing one.
    return json.trim() === "" ? [] : undefined;
  }
}

function isStringArray(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}
