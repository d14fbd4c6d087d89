/**
 * HostFile: the servers of the engine's host, as its resolv.conf names them, and followed where that is wanted. Behind
 * the stub of systemd-resolved stand the servers that the stub asks itself, which another file names: they are asked when
 * the stub cannot be reached, and when they change, what the stub said before may be wrong.
 */
import { LIMITS } from "../../base/limits.ts";
import { addressBytes, isSameAddress } from "../../base/model/address.ts";
import type { Server } from "../../base/model/view.ts";
import { type EngineHost, tryReadEngineFile, readEngineFile } from "../namespace/engine-host.ts";
import { DebounceTimer } from "./debounce-timer.ts";
import { PathWatch } from "./path-watch.ts";
import { parseResolvConf } from "./resolv-conf.ts";

const DEFAULT_PATH = "/etc/resolv.conf";
const UPLINKS_PATH = "/run/systemd/resolve/resolv.conf";
/** Where systemd-resolved answers: with everything it does, and as a mere proxy. */
const STUBS = new Set(["127.0.0.53", "127.0.0.54"]);
const DNS_PORT = 53;

type HostRoot = Pick<EngineHost, "root">;

/** What the files say at one moment. */
export interface HostServers {
  /** In their order, those behind a stub last. */
  readonly servers: readonly Server[];
  /** What stands in the file where an address should. */
  readonly invalid: readonly string[];
  /** All addresses of the file, and those behind the stub, if it is one. */
  readonly nameservers: readonly string[];
  readonly uplinks: readonly string[];
  /** A file is there that cannot be read now, because somebody holds a lease on it; so nothing is known. */
  readonly isBusy?: true;
}

const BUSY: HostServers = { servers: [], invalid: [], nameservers: [], uplinks: [], isBusy: true };

/** The files that may name servers of the host's. */
export function hostFiles(path: string | undefined): readonly string[] {
  return path === undefined ? [DEFAULT_PATH, UPLINKS_PATH] : [path];
}

export function readHostServers(host: HostRoot, path = DEFAULT_PATH): HostServers {
  const file = tryReadEngineFile(host, path);
  if (file.kind === "busy") return BUSY;
  const { nameservers: named, invalid } = parseResolvConf(file.kind === "read" ? file.text : "");
  const isStub = named.length > 0 && named.every((address) => STUBS.has(address));
  const behind = isStub ? parseResolvConf(readEngineFile(host, UPLINKS_PATH) ?? "").nameservers : [];
  const uplinks = behind.filter((address) => !isLoopback(address));
  return { servers: serversOf(named, uplinks), invalid, nameservers: named, uplinks };
}

function serversOf(named: readonly string[], uplinks: readonly string[]): Server[] {
  const known = new Set<string>();
  const all = [
    ...named.map((address): Server => ({ from: "host", address, port: DNS_PORT })),
    ...uplinks.map((address): Server => ({ from: "host", address, port: DNS_PORT, isBackup: true })),
  ];
  return all
    .filter(({ address }) => {
      const key = addressKey(address);
      const isNew = !known.has(key);
      known.add(key);
      return isNew;
    })
    .slice(0, LIMITS.hostServers);
}

/** One text for every way to write an address. */
function addressKey(address: string): string {
  const [, zone = ""] = address.split("%", 2);
  return `${Buffer.from(addressBytes(address) ?? []).toString("hex")}%${zone}`;
}

function isLoopback(address: string): boolean {
  return address.startsWith("127.") || isSameAddress(address, "::1");
}

export interface HostFileParts {
  /** The engine's host as it is now. */
  readonly host: () => HostRoot;
  /** Where it is not in its usual place. */
  readonly path: string | undefined;
  readonly onChange: (now: HostServers) => void;
}

export class HostFile {
  readonly #parts: HostFileParts;
  readonly #watch = new PathWatch(() => this.#next.trigger());
  readonly #next = new DebounceTimer(() => this.reread());
  #now: HostServers;
  /** Since when servers are missing. */
  #missingMs: number | undefined;

  constructor(parts: HostFileParts) {
    this.#parts = parts;
    this.#arm();
    this.#now = this.#read();
    this.#next.runAfter(this.#pollMs);
  }

  get now(): HostServers {
    return this.#now;
  }

  /** To be called when the engine's host may be another one, and whenever somebody wants to be sure. */
  reread(): void {
    this.#next.cancel();
    this.#arm();
    const [before, now] = [this.#now, this.#read()];
    // What was known goes on until the file can be read again.
    if (now.isBusy === true) return this.#next.runAfter(this.#pollMs);
    if (hasLost(now, before)) {
      this.#missingMs ??= performance.now();
      const leftMs = this.#missingMs + LIMITS.hostFileMissingMs - performance.now();
      if (leftMs > 0) return this.#next.runAfter(leftMs);
    }
    this.#missingMs = undefined;
    this.#next.runAfter(this.#pollMs);
    const isKnown = before.isBusy !== true;
    if (isKnown && isSame(now.nameservers, before.nameservers) && isSame(now.uplinks, before.uplinks)) return;
    this.#now = now;
    this.#parts.onChange(now);
  }

  close(): void {
    this.#next.cancel();
    this.#watch.close();
  }

  get #pollMs(): number {
    return this.#watch.isBlind ? LIMITS.hostFileUnwatchedMs : LIMITS.hostFilePollMs;
  }

  /** Armed before it is read, so that nothing falls in between. */
  #arm(): void {
    this.#watch.arm(this.#parts.host().root, [this.#parts.path ?? DEFAULT_PATH, UPLINKS_PATH]);
  }

  #read(): HostServers {
    return readHostServers(this.#parts.host(), this.#parts.path);
  }
}

/** A file that names nobody any more may only be on its way to be a new one. */
function hasLost(now: HostServers, before: HostServers): boolean {
  if (now.nameservers.length === 0) return before.nameservers.length > 0;
  return now.uplinks.length === 0 && before.uplinks.length > 0 && isSame(now.nameservers, before.nameservers);
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.join(" ") === other.join(" ");
}
