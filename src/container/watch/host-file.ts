/**
 * HostFile: the nameservers in the resolv.conf of the engine's host, re-read when the file changes. If these are the
 * stub of systemd-resolved, the stub's own upstreams are read from another file. They are used when the stub cannot be
 * reached, and when they change, cached replies of the stub may be wrong.
 */
import { LIMITS } from "../../base/limits.ts";
import { addressBytes, isLoopback } from "../../base/model/address.ts";
import { areStubs } from "../../base/model/listener-addresses.ts";
import type { Server } from "../../base/model/view.ts";
import { type EngineHost, tryReadEngineFile, readEngineFile } from "../namespace/engine-host.ts";
import { DebounceTimer } from "./debounce-timer.ts";
import { type ListedServer, parseResolvConf } from "./resolv-conf.ts";
import { closeSync, fstatSync, readlinkSync, watch } from "node:fs";
import { posix } from "node:path";
import { O_PATH, openInRoot } from "../../kernel/libc.ts";

const DEFAULT_PATH = "/etc/resolv.conf";
const UPLINKS_PATH = "/run/systemd/resolve/resolv.conf";
const DNS_PORT = 53;

type HostRoot = Pick<EngineHost, "root" | "resolvConf">;

/** The content of the files. */
export interface HostServers {
  /** In file order, the upstreams of a stub last. */
  readonly servers: readonly Server[];
  /** Nameserver entries that are not addresses. */
  readonly invalid: readonly string[];
  /** All addresses of the file; the next field has the upstreams of a stub. */
  readonly nameservers: readonly string[];
  readonly search: readonly string[];
  readonly uplinks: readonly string[];
  /** The file exists but cannot be read now, because a process holds a lease on it. */
  readonly isBusy?: true;
}

const BUSY: HostServers = { servers: [], invalid: [], nameservers: [], search: [], uplinks: [], isBusy: true };

/** The files that may list the host's servers. */
export function hostFiles({ resolvConf }: Pick<EngineHost, "resolvConf">, path: string | undefined): readonly string[] {
  if (path !== undefined) return [path];
  return [...(resolvConf === undefined ? [] : [resolvConf]), DEFAULT_PATH, UPLINKS_PATH];
}

/** Of all files that may list them, as they are now. */
export function listedServers(host: HostRoot, path: string | undefined): ListedServer[] {
  return hostFiles(host, path).flatMap((name) => {
    const file = tryReadEngineFile(host, name);
    if (file.kind !== "read") return [];
    return file.text.split("\n").flatMap((text, index) => {
      const [address] = parseResolvConf(text).nameservers;
      return address === undefined ? [] : [{ address, file: name, line: index + 1 }];
    });
  });
}

export function readHostServers(host: HostRoot, path = host.resolvConf ?? DEFAULT_PATH): HostServers {
  const file = tryReadEngineFile(host, path);
  if (file.kind === "busy") return BUSY;
  const { nameservers, invalid, search } = parseResolvConf(file.kind === "read" ? file.text : "");
  const upstreams = areStubs(nameservers) ? parseResolvConf(readEngineFile(host, UPLINKS_PATH) ?? "").nameservers : [];
  const uplinks = upstreams.filter((address) => !isLoopback(address));
  return { servers: serversOf(nameservers, uplinks), invalid, nameservers, search, uplinks };
}

function serversOf(nameservers: readonly string[], uplinks: readonly string[]): Server[] {
  const known = new Set<string>();
  const all = [
    ...nameservers.map((address): Server => ({ from: "host", address, port: DNS_PORT })),
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

/** The same key for every spelling of an address. */
function addressKey(address: string): string {
  const [, zone = ""] = address.split("%", 2);
  return `${Buffer.from(addressBytes(address) ?? []).toString("hex")}%${zone}`;
}

interface HostFileParts {
  /** Returns the current engine host. */
  readonly host: () => HostRoot;
  /** The default is /etc/resolv.conf. */
  readonly path: string | undefined;
  readonly onChange: (now: HostServers) => void;
}

export class HostFile {
  readonly #parts: HostFileParts;
  readonly #watch = new PathWatch(() => this.#timer.trigger());
  readonly #timer = new DebounceTimer(() => this.reread());
  #now: HostServers;
  /** The time at which the servers disappeared. */
  #missingMs: number | undefined;

  constructor(parts: HostFileParts) {
    this.#parts = parts;
    this.#arm();
    this.#now = this.#read();
    this.#timer.runAfter(this.#pollMs);
  }

  get now(): HostServers {
    return this.#now;
  }

  /** Reads the file now. Call when the engine's host may have changed. */
  reread(): void {
    this.#timer.cancel();
    this.#arm();
    const [before, now] = [this.#now, this.#read()];
    // Keep the last servers until the file can be read again.
    if (now.isBusy === true) return this.#timer.runAfter(this.#pollMs);
    if (hasLostServers(now, before)) {
      this.#missingMs ??= performance.now();
      const leftMs = this.#missingMs + LIMITS.hostFileMissingMs - performance.now();
      if (leftMs > 0) return this.#timer.runAfter(leftMs);
    }
    this.#missingMs = undefined;
    this.#timer.runAfter(this.#pollMs);
    const isKnown = before.isBusy !== true;
    if (isKnown && isSame(now.nameservers, before.nameservers) && isSame(now.uplinks, before.uplinks)) return;
    this.#now = now;
    this.#parts.onChange(now);
  }

  close(): void {
    this.#timer.cancel();
    this.#watch.close();
  }

  get #pollMs(): number {
    return this.#watch.isBlind ? LIMITS.hostFileUnwatchedMs : LIMITS.hostFilePollMs;
  }

  /** Arms the watch; call before reading, so that no change is missed in between. */
  #arm(): void {
    const { root, resolvConf = DEFAULT_PATH } = this.#parts.host();
    this.#watch.arm(root, [this.#parts.path ?? resolvConf, UPLINKS_PATH]);
  }

  #read(): HostServers {
    return readHostServers(this.#parts.host(), this.#parts.path);
  }
}

/** Whether servers have disappeared: the file may just be in the middle of a rewrite. */
function hasLostServers(now: HostServers, before: HostServers): boolean {
  if (now.nameservers.length === 0) return before.nameservers.length > 0;
  return now.uplinks.length === 0 && before.uplinks.length > 0 && isSame(now.nameservers, before.nameservers);
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.join(" ") === other.join(" ");
}

/** Path components to follow, including those of symlinks; the kernel itself follows at most 40 symlinks. */
const STEPS_MAX = 256;

/**
 * Reports that the files at some paths may have changed. Files are replaced, symlinks are swapped, folders
 * are removed and re-created. So every folder on the path is watched for the next name, following symlinks as a process
 * with the engine's root would. The file itself is watched, too, because it may be written by another path (a bind
 * mount).
 *
 * The kernel watches inodes, not paths: after a change nothing is watched, and the caller must arm the watch again before it reads.
 */
class PathWatch {
  readonly #onEvent: () => void;
  /** The names to watch in each folder. */
  readonly #folders = new Map<string, Set<string>>();
  #closers: (() => void)[] = [];
  #isBlind = false;

  constructor(onEvent: () => void) {
    this.#onEvent = onEvent;
  }

  /** Whether changes may be missed, because the kernel refused a watch. */
  get isBlind(): boolean {
    return this.#isBlind;
  }

  /** Watches these paths as they are now; changes after it has returned are not missed. */
  arm(root: number, paths: readonly string[]): void {
    this.close();
    for (const path of paths) this.#follow(root, path);
  }

  close(): void {
    for (const close of this.#closers) close();
    this.#closers = [];
    this.#folders.clear();
    this.#isBlind = false;
  }

  #follow(root: number, path: string): void {
    const rest = path.split("/").toReversed();
    let folder = "/";
    for (let steps = 0; steps < STEPS_MAX; steps++) {
      const name = rest.pop();
      if (name === undefined) break;
      if (name === "" || name === ".") continue;
      if (name === "..") {
        folder = posix.dirname(folder);
        continue;
      }
      const target = withOpen(root, folder, (fd) => {
        // Watch before reading the link, so that a swap in between is reported.
        this.#watchFolder(fd, folder, name);
        return linkTarget(fd, name) ?? "";
      });
      // The folder does not exist. Its parent is watched and will report its creation.
      if (target === undefined) return;
      if (target.startsWith("/")) folder = "/";
      if (target === "") folder = posix.join(folder, name);
      else rest.push(...target.split("/").toReversed());
    }
    withOpen(root, folder, (fd) => this.#watch(fd, () => true));
  }

  #watchFolder(fd: number, folder: string, name: string): void {
    const known = this.#folders.get(folder);
    if (known !== undefined) {
      known.add(name);
      return;
    }
    const names = new Set([name]);
    this.#folders.set(folder, names);
    this.#watch(fd, (changed) => changed === null || names.has(changed));
  }

  #watch(fd: number, counts: (name: string | null) => boolean): void {
    const stat = fstatSync(fd);
    // A device such as /dev/null is written all the time.
    if (!stat.isFile() && !stat.isDirectory()) return;
    try {
      const watcher = watch(`/proc/self/fd/${fd}`, { persistent: false }, (_, name) => {
        if (!counts(name)) return;
        // Files are written any number of times a second. The caller arms the watch again.
        this.close();
        this.#onEvent();
      });
      watcher.on("error", () => (this.#isBlind = true));
      this.#closers.push(() => watcher.close());
    } catch {
      this.#isBlind = true;
    }
  }
}

/** Calls `use` with the opened path; undefined if it cannot be opened. */
function withOpen<T>(root: number, path: string, use: (fd: number) => T): T | undefined {
  let fd;
  try {
    // O_PATH: the file may be a pipe, or leased.
    fd = openInRoot(root, path, O_PATH);
  } catch {
    return undefined;
  }
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}

function linkTarget(folder: number, name: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${folder}/${name}`);
  } catch {
    return undefined;
  }
}
