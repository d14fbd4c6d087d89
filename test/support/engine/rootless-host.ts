/**
 * Simulated machine of a rootless engine: a root file system of its own, as for other engines, with what Docker wants of
 * a machine before a normal user can start an engine: the user, their subordinate IDs and runtime directory, device
 * nodes that they may open, and the programs that make user namespaces and their network. The dns11 under test and its
 * Node are there, too, because the user may have no access to where they are on the machine.
 */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { EngineHost } from "./engine-host.ts";
import { rootfsOf } from "./suite.ts";

/** Users of that machine by number; no account of the real machine has these. */
export const OWNER = 21_011;
export const OTHER_USER = 21_012;

/** Where things are on that machine. */
export const INSIDE = {
  node: "/usr/local/bin/node",
  program: "/opt/dns11/dist/cmd/dns11.js",
  runtime: `/run/user/${OWNER}`,
  startEngine: "/usr/share/docker.io/contrib/dockerd-rootless.sh",
  /** Variables of that script, one a line. */
  engineSettings: "/run/engine.env",
  /** Unit files of the user. */
  units: "/run/units",
} as const;

const SUITE = "forky";
const PROJECT = dirname(dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url))))));

/** The devices of the machine are not for every user, hence some of its own. */
const SCRIPT = `
set -eu
folder=$1 resolv_conf=$2 rootfs=$3 owner=$4 other=$5 node=$6 project=$7
root=$folder/root
mkdir "$folder/memory" "$root" "$folder/run" "$folder/data"
mount -t tmpfs tmpfs "$folder/memory"
mkdir "$folder/memory/upper" "$folder/memory/work"
mount -t overlay -o "lowerdir=$rootfs,upperdir=$folder/memory/upper,workdir=$folder/memory/work" overlay "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/net" "$root/dev/pts" "$root/dev/shm"
device() { mknod -m 666 "$root/dev/$1" c "$2" "$3"; }
device null 1 3; device zero 1 5; device full 1 7; device random 1 8; device urandom 1 9; device tty 5 0
device net/tun 10 200; device fuse 10 229
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
printf 'owner:x:%s:%s::/home/owner:/bin/sh\\nother:x:%s:%s::/:/bin/sh\\n' "$owner" "$owner" "$other" "$other" >> "$root/etc/passwd"
printf 'owner:x:%s:\\nother:x:%s:\\n' "$owner" "$other" >> "$root/etc/group"
echo owner:100000:65536 > "$root/etc/subuid"
echo owner:100000:65536 > "$root/etc/subgid"
mkdir -p "$root/home/owner" "$root/run/user/$owner" "$root/opt/dns11" "$root$folder"
touch "$root/run/engine.env"
mkdir "$root/run/units"
chown "$owner:$owner" "$root/home/owner" "$folder/run" "$folder/data"
chmod 700 "$folder/run"
chmod 711 "$folder"
mount --bind "$folder" "$root$folder"
mount --bind "$folder/run" "$root/run/user/$owner"
touch "$root/usr/local/bin/node"
mount --bind "$node" "$root/usr/local/bin/node"
# Not the folder itself, which users may not be allowed to enter.
for part in dist node_modules; do
  mkdir "$root/opt/dns11/$part"
  mount --bind "$project/$part" "$root/opt/dns11/$part"
done
cp "$project/package.json" "$root/opt/dns11"
rm -f "$root/etc/resolv.conf"
printf %s "$resolv_conf" > "$root/etc/resolv.conf"
mkdir "$root/machine"
cd "$root"
pivot_root . machine
umount -l /machine
echo ready
exec sleep infinity
`;

export async function startRootlessHost(place: {
  readonly netnsPath: string;
  readonly folder: string;
  readonly resolvConf: string;
}): Promise<EngineHost> {
  const rootfs = await rootfsOf(SUITE);
  const users = [String(OWNER), String(OTHER_USER)];
  return await EngineHost.startWith(SCRIPT, place, [rootfs, ...users, process.execPath, PROJECT]);
}
