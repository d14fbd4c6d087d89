/**
 * systemd-resolved 252 of Debian, as the stub resolver of a test's host: out of a root file system of its own, in the
 * host's network namespace. It is never installed on the machine, where it would replace /etc/resolv.conf.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

import { cachedRootfs } from "../engine/suite.ts";
import { SYSTEM_PATH } from "../program/command.ts";
import { dig } from "../client/dig.ts";
import { type NetworkContext, inNetns } from "../rig/netns.ts";
import { unrefChild } from "../rig/reaper.ts";
import { inTime, waitFor } from "../rig/wait.ts";

/** The address of its stub. */
export const STUB = "127.0.0.53";

/** The cached files stay as they are: what it needs to write is in memory, in a mount namespace that ends with it. */
const START = `
set -eu
root=$1 server=$2; shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/etc/systemd"
printf '[Resolve]\\nDNS=%s\\nFallbackDNS=\\nDNSSEC=no\\nLLMNR=no\\nMulticastDNS=no\\n' "$server" > "$root/etc/systemd/resolved.conf"
mkdir -p "$root/run/systemd/resolve"
chroot "$root" chown systemd-resolve:systemd-resolve /run/systemd/resolve
exec "$@" chroot "$root" /lib/systemd/systemd-resolved
`;

/** Starts it with one server, below `prefix`, which may put it into a control group. */
export async function startResolved(
  place: NetworkContext & { readonly netnsPath: string },
  server: string,
  prefix: readonly string[],
): Promise<Resolved> {
  const root = await cachedRootfs("bookworm-resolved", "bookworm", "systemd-resolved,dbus");
  const [command = "", ...args] = inNetns(place.netnsPath, "unshare", [
    "--mount",
    "sh",
    "-c",
    START,
    "resolved",
    root,
    server,
    ...prefix,
  ]);
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", command, ...args], {
    stdio: "ignore",
    detached: true,
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  const resolved = new Resolved(child);
  await waitFor("systemd-resolved to answer", async () =>
    (await dig(place, `@${STUB}`, "+time=1", "ready.ok.test")).status === "NOERROR" ? true : undefined,
  );
  return resolved;
}

export class Resolved implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(child: ChildProcess) {
    this.#process = child;
    this.#ended = once(child, "close");
    unrefChild(child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await inTime(this.#ended, "the exit of systemd-resolved");
  }
}
