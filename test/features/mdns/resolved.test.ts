/**
 * Names in local by the systemd-resolved of the engine's host, out of a root file system of its own: with MulticastDNS on it asks the
 * local network; without it, names fail and the cause says what to set.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { cachedRootfs } from "../../support/engine/suite.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { SYSTEM_PATH, check } from "../../support/program/command.ts";
import { type Dns11, startDns11 } from "../../support/program/dns11.ts";
import { inNetns } from "../../support/rig/netns.ts";
import { unrefChild } from "../../support/rig/reaper.ts";
import { inTime, waitFor } from "../../support/rig/wait.ts";
import { LAN, LINK, type Machine, addMachine } from "./avahi.ts";

const IN_ROOT = `
set -eu
root=$1 run=$2 mdns=$3
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount --bind "$run" "$root/run"
mount -t tmpfs tmpfs "$root/etc/systemd"
printf '[Resolve]\\nFallbackDNS=\\nLLMNR=no\\nDNSStubListener=no\\nMulticastDNS=%s\\n' "$mdns" > "$root/etc/systemd/resolved.conf"
chroot "$root" chown systemd-resolve:systemd-resolve /run/systemd/resolve
exec chroot "$root" /lib/systemd/systemd-resolved
`;

let engine: Engine;
let machine: Machine;
let app: Container;
let instance: Dns11;
let folder: string;

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
  machine = await addMachine(engine, { hostName: "printer" });
  await createNetwork(engine, "shop");
  app = await runContainer(engine, { name: "app", networks: ["shop"] });
  folder = join(engine.folder, "resolved-run");
  mkdirSync(join(folder, "systemd", "resolve"), { recursive: true });
  mkdirSync(join(folder, "systemd", "netif", "links"), { recursive: true });
  // What systemd-networkd writes of a link with MulticastDNS=yes: without, only the whole of the machine has it on.
  writeFileSync(
    join(folder, "systemd", "netif", "links", await indexOf(LINK)),
    "ADMIN_STATE=configured\nOPER_STATE=routable\nMDNS=yes\n",
  );
  const shared = "mkdir -p /run/systemd && mount --rbind $0/systemd /run/systemd";
  await check("nsenter", ["--target", String(engine.hostPid), "--mount", "--", "sh", "-c", shared, folder]);
  instance = await startDns11(engine, { settings: { mdns: "resolved" } });
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await machine[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function indexOf(link: string): Promise<string> {
  const { stdout } = await engine.enter("ip", ["-o", "link", "show", link]);
  return /^\d+/.exec(stdout)?.[0] ?? "";
}

class Resolved implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(child: ChildProcess) {
    this.#process = child;
    this.#ended = once(child, "close");
    unrefChild(child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGTERM");
    await inTime(this.#ended, "the exit of systemd-resolved");
  }
}

async function startResolved(mdns: "yes" | "no"): Promise<Resolved> {
  const root = await cachedRootfs("bookworm-nss-resolve", "bookworm", "systemd-resolved,dbus,libnss-resolve");
  const script = ["--mount", "sh", "-c", IN_ROOT, "resolved", root, folder, mdns];
  const [command = "", ...args] = inNetns(engine.netnsPath, "unshare", script);
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", command, ...args], {
    stdio: "ignore",
    detached: true,
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  const resolved = new Resolved(child);
  const socket = join(folder, "systemd", "resolve", "io.systemd.Resolve");
  await waitFor("the socket of systemd-resolved", () => (existsSync(socket) ? true : undefined));
  return resolved;
}

test("systemd-resolved resolves names of the local network where MulticastDNS is on", async () => {
  await using _ = await startResolved("yes");
  for (const [type, address] of [
    ["A", LAN.machine],
    ["AAAA", LAN.machine6],
  ] as const) {
    await waitFor(type, async () =>
      dataOf(await dig(app, "printer.local", type)).includes(address) ? true : undefined,
    );
  }
  assert.equal((await instance.status()).mdns?.by, "systemd-resolved");
});

test("where MulticastDNS is not on, names fail, and the cause says what to set", async () => {
  await using _ = await startResolved("no");
  await waitFor("the reason", async () => {
    await dig(app, "other.local");
    const { causes } = await instance.client.explain({ container: "app", name: "other.local", type: "A" });
    const [first] = causes;
    return first?.code === "not-announced" && first.advice?.includes("MulticastDNS=yes") === true ? true : undefined;
  });
  assert.equal((await dig(app, "other.local")).status, "SERVFAIL");
});
