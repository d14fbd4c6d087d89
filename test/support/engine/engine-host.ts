/**
 * Simulated host of a test's dockerd: a network namespace, a mount namespace and a root file system, kept by one
 * sleeping process, so that dockerd can be stopped and started while its containers and their mounts remain. Its /run
 * is separate, so dockerd, containerd and the shims never meet those of the machine.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { type CommandResult, SYSTEM_PATH, run } from "../program/command.ts";
import { RARE_COLLECTIONS } from "../program/daemon.ts";
import { inNetns } from "../rig/netns.ts";

export interface EngineHostOptions {
  readonly netnsPath: string;
  /** The one folder that has the same path on machine and host. */
  readonly folder: string;
  /** Undefined for a host with the machine's root file system. */
  readonly rootfs: string | undefined;
  readonly resolvConf: string;
}

/**
 * A sysfs shows the network devices of the namespace it was mounted from, hence a new one, on which the control groups
 * are mounted again. Writes of dockerd and containerd to /etc/docker and /opt/containerd go to in-memory layers.
 */
const LIKE_THE_MACHINE = `
set -eu
folder=$1 resolv_conf=$2
mkdir "$folder/memory" "$folder/cgroup"
mount -t tmpfs tmpfs "$folder/memory"
for layer in /etc /opt; do
  test -d "$layer" || continue
  upper=$folder/memory$layer/upper work=$folder/memory$layer/work
  mkdir -p "$upper" "$work"
  mount -t overlay -o "lowerdir=$layer,upperdir=$upper,workdir=$work" overlay "$layer"
done
mount --rbind /sys/fs/cgroup "$folder/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$folder/cgroup" /sys/fs/cgroup
umount -l "$folder/cgroup"
mount -t tmpfs tmpfs /run
rm -f /etc/resolv.conf
printf %s "$resolv_conf" > /etc/resolv.conf
`;

/**
 * pivot_root, because runc does not work in a plain chroot. The in-memory upper layer keeps the cached files unchanged.
 */
const WITH_ROOTFS = `
set -eu
folder=$1 resolv_conf=$2 rootfs=$3
root=$folder/root
mkdir "$folder/memory" "$root"
mount -t tmpfs tmpfs "$folder/memory"
mkdir "$folder/memory/upper" "$folder/memory/work"
mount -t overlay -o "lowerdir=$rootfs,upperdir=$folder/memory/upper,workdir=$folder/memory/work" overlay "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mkdir -p "$root$folder"
mount --bind "$folder" "$root$folder"
rm -f "$root/etc/resolv.conf"
printf %s "$resolv_conf" > "$root/etc/resolv.conf"
mkdir "$root/machine"
cd "$root"
pivot_root . machine
umount -l /machine
`;

/** A separate service beside dockerd, as in Debian, so that it survives what a test does to dockerd. */
const START_CONTAINERD = `
mkdir -p /run/containerd
printf 'version = 2\\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\\n' > /run/containerd/config.toml
containerd --config /run/containerd/config.toml --root "$folder/containerd" > "$folder/containerd.log" 2>&1 &
until test -S /run/containerd/containerd.sock; do
  kill -0 $! || { tail "$folder/containerd.log" >&2; exit 1; }
  sleep 0.01
done
echo ready
exec sleep infinity
`;

export class EngineHost {
  readonly #sleeper: ChildProcess;

  private constructor(sleeper: ChildProcess) {
    this.#sleeper = sleeper;
  }

  static async start({ rootfs, ...place }: EngineHostOptions): Promise<EngineHost> {
    const script = (rootfs === undefined ? LIKE_THE_MACHINE : WITH_ROOTFS) + START_CONTAINERD;
    return await EngineHost.startWith(script, place, rootfs === undefined ? [] : [rootfs]);
  }

  /** `script` gets the folder, the text of resolv.conf and `words`; it says a line when all is ready, and then sleeps. */
  static async startWith(
    script: string,
    { netnsPath, folder, resolvConf }: Omit<EngineHostOptions, "rootfs">,
    words: readonly string[],
  ): Promise<EngineHost> {
    const args = ["--mount", "sh", "-c", script, "engine-host", folder, resolvConf, ...words];
    const [command = "", ...rest] = inNetns(netnsPath, "unshare", args);
    const sleeper = spawn(command, rest, {
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
      env: { ...process.env, ...RARE_COLLECTIONS, PATH: SYSTEM_PATH },
    });
    await ready(sleeper);
    return new EngineHost(sleeper);
  }

  get pid(): number {
    return this.#sleeper.pid ?? 0;
  }

  async run(command: string, args: readonly string[] = []): Promise<CommandResult> {
    const [first, rest] = this.command(command, args);
    return await run(first, rest);
  }

  /** The command line that runs a command on this host. */
  command(command: string, args: readonly string[] = []): [string, string[]] {
    return ["nsenter", ["--target", String(this.pid), "--mount", "--net", "--", command, ...args]];
  }
}

async function ready(sleeper: ChildProcess): Promise<void> {
  const { stdout, stderr } = sleeper;
  let errors = "";
  stderr?.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  await new Promise<void>((resolve, reject) => {
    stdout?.once("data", () => resolve());
    sleeper.once("error", reject);
    sleeper.once("close", (code) =>
      reject(new Error(`the engine's host did not start: exit ${code}: ${errors.trim()}`)),
    );
  });
  // It only sleeps from now on; neither the process nor its pipes may keep the test alive.
  sleeper.unref();
  stdout?.destroy();
  stderr?.destroy();
}
