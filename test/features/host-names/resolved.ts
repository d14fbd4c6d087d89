/**
 * systemd-resolved of Debian as the resolver of a test's host: out of a root file system of its own, in the host's
 * network namespace, with a system bus and systemd-networkd where a test needs them. It is never installed on the
 * machine, where it would replace /etc/resolv.conf.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import type { Engine } from "../../support/engine/engine.ts";
import { cachedRootfs } from "../../support/engine/suite.ts";
import { type CommandResult, SYSTEM_PATH, run, stdoutOf } from "../../support/program/command.ts";
import { dig } from "../../support/client/dig.ts";
import { type NetworkContext, inNetns } from "../../support/rig/netns.ts";
import { unrefChild } from "../../support/rig/reaper.ts";
import { inTime, waitFor } from "../../support/rig/wait.ts";

/** The releases whose systemd-resolved is tested: systemd 252, and 259 or newer. */
export type Release = "bookworm" | "forky";

/** The address of its stub. */
export const STUB = "127.0.0.53";

const BUS_SOCKET = "dbus/system_bus_socket";

/**
 * The cached files stay as they are: what is written is in memory, in a mount namespace that ends with the program, or
 * in a folder that takes the place of /run.
 */
const IN_ROOT = `
set -eu
root=$1 run=$2 server=$3 files=$4; shift 4
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
if test -n "$run"; then mount --bind "$run" "$root/run"; else mount -t tmpfs tmpfs "$root/run"; fi
mount -t tmpfs tmpfs "$root/etc/systemd"
printf '[Resolve]\\nDNS=%s\\nFallbackDNS=\\nDNSSEC=no\\nLLMNR=no\\nMulticastDNS=no\\n' "$server" > "$root/etc/systemd/resolved.conf"
if test -n "$files"; then cp -r "$files/." "$root/etc/systemd"; fi
mkdir -p "$root/run/systemd/resolve" "$root/run/systemd/netif/links" "$root/run/dbus"
chroot "$root" chown systemd-resolve:systemd-resolve /run/systemd/resolve
chroot "$root" chown -R systemd-network:systemd-network /run/systemd/netif
# Read-only, as in a container: systemd-networkd does not wait for udev then.
mount -t sysfs -o ro sysfs "$root/sys"
exec "$@"
`;

interface ProgramPlace {
  readonly netnsPath: string;
  /** The folder of the machine that is its /run; by default one in memory. */
  readonly run?: string;
  readonly release: Release;
  /** The server of systemd-resolved. */
  readonly server: string;
  /** A folder whose files are those of /etc/systemd, beside resolved.conf. */
  readonly files?: string;
  /** What the command is started by; it may put it into a control group. */
  readonly prefix?: readonly string[];
}

/**
 * Starts it with one server, below `prefix`, which may put it into a control group. It resolves nothing before a link
 * of the host, such as a bridge with a container, has an address.
 */
export async function startResolved(
  place: NetworkContext & { readonly netnsPath: string },
  server: string,
  prefix: readonly string[],
  bus?: SystemBus,
  files = "",
): Promise<RootProgram> {
  const { netnsPath } = place;
  const { run: folder = "", release = "bookworm" } = bus ?? {};
  const resolved = await startInRoot({ netnsPath, server, prefix, run: folder, release, files }, [
    "/lib/systemd/systemd-resolved",
  ]);
  await waitFor("systemd-resolved to answer", async () =>
    (await dig(place, `@${STUB}`, "+time=1", "ready.ok.test")).status === "NOERROR" ? true : undefined,
  );
  if (bus !== undefined) await bus.waitForName("org.freedesktop.resolve1");
  return resolved;
}

/** Starts the bus, and puts it and what systemd-resolved writes where the host's programs look for them. */
export async function startSystemBus(engine: Engine, release: Release): Promise<SystemBus> {
  const folder = join(engine.folder, `${release}-run`);
  mkdirSync(join(folder, "dbus"), { recursive: true });
  mkdirSync(join(folder, "systemd", "resolve"), { recursive: true });
  const program = await startInRoot({ netnsPath: engine.netnsPath, run: folder, release, server: "" }, [
    "dbus-daemon",
    "--system",
    "--nofork",
    "--nopidfile",
    "--nosyslog",
  ]);
  await waitFor("the system bus", () => (existsSync(join(folder, BUS_SOCKET)) ? true : undefined));
  const shared =
    "mkdir -p /run/dbus /run/systemd && mount --bind $0/dbus /run/dbus && mount --rbind $0/systemd /run/systemd";
  const host = ["--target", String(engine.hostPid), "--mount", "--", "sh", "-c", shared, folder];
  stdoutOf(await run("nsenter", host), "mount");
  return new SystemBus({ run: folder, release, netnsPath: engine.netnsPath }, program);
}

/** Writes a file into a folder that will be a program's /etc/systemd, and returns the folder. */
export function writeIn(folder: string, file: string, text: string): string {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), text);
  return folder;
}

/** Starts systemd-networkd with the files of this folder, such as network/NAME.network. */
export async function startNetworkd(bus: SystemBus, files: string): Promise<RootProgram> {
  const networkd = await startInRoot({ ...bus.place, server: "", files }, ["/lib/systemd/systemd-networkd"]);
  await bus.waitForName("org.freedesktop.network1");
  return networkd;
}

async function startInRoot(
  { netnsPath, run: folder = "", release, server, files = "", prefix = [] }: ProgramPlace,
  words: readonly string[],
): Promise<RootProgram> {
  const root = await cachedRootfs(`${release}-nss-resolve`, release, "systemd-resolved,dbus,libnss-resolve");
  const script = [
    "--mount",
    "sh",
    "-c",
    IN_ROOT,
    "root",
    root,
    folder,
    server,
    files,
    ...prefix,
    "chroot",
    root,
    ...words,
  ];
  const [command = "", ...args] = inNetns(netnsPath, "unshare", script);
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", command, ...args], {
    stdio: "ignore",
    detached: true,
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  return new RootProgram(child);
}

type BusPlace = Pick<ProgramPlace, "netnsPath" | "release"> & { readonly run: string };

/** A program in that root file system. */
export class RootProgram implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(child: ChildProcess) {
    this.#process = child;
    this.#ended = once(child, "close");
    unrefChild(child);
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await inTime(this.#ended, "the exit of the program");
  }
}

export class SystemBus implements AsyncDisposable {
  readonly place: BusPlace;
  readonly #program: RootProgram;

  constructor(place: BusPlace, program: RootProgram) {
    this.place = place;
    this.#program = program;
  }

  get release(): Release {
    return this.place.release;
  }

  /** The folder that is /run for its programs. */
  get run(): string {
    return this.place.run;
  }

  /** A command of that root file system: its getent asks systemd-resolved by nss-resolve. */
  async command(...words: readonly string[]): Promise<CommandResult> {
    const target = ["--target", String(this.#program.pid), "--mount", "--net", "--root", "--wd=/", "--"];
    return await run("nsenter", [...target, ...words]);
  }

  /** What glibc with nss-resolve gets: an address or a name, or nothing. */
  async lookup(name: string): Promise<string> {
    const words = /^[\d.]+$/.test(name) ? ["hosts", name] : ["ahostsv4", name];
    return (await this.command("getent", ...words)).stdout.trim();
  }

  async waitForName(name: string): Promise<void> {
    const bus = "org.freedesktop.DBus";
    const words = ["busctl", "call", bus, "/org/freedesktop/DBus", bus, "NameHasOwner", "s", name];
    await waitFor(`${name} on the bus`, async () =>
      (await this.command(...words)).stdout.includes("true") ? true : undefined,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program[Symbol.asyncDispose]();
  }
}
