/**
 * Disk: the root file system of a machine as an image for the emulator, with its kernel beside it. It is built once from Debian's
 * packages and cached: remove both to get newer packages.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { debianMirror } from "../support/engine/debian-mirror.ts";
import { cachedRootfs } from "../support/engine/suite.ts";
import { run, stdoutOf } from "../support/program/command.ts";
import { type Machine, packagesOf } from "./machines.ts";

const SIZE = "4G";
const TIMEOUT_MS = 600_000;
/** The second disk is the checkout. What the tests print there is what the host reads. */
const UNIT = `[Unit]
Description=Run the tests of dns11, and end the machine
After=basic.target dbus.service

[Service]
Type=oneshot
TimeoutStartSec=infinity
Environment=HOME=/root PATH=/mnt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ExecStartPre=/bin/mount /dev/vdb /mnt
WorkingDirectory=/mnt
ExecStart=/mnt/bin/node dist/test/vm/guest-main.js
ExecStopPost=/bin/systemctl poweroff --force --force
StandardOutput=file:/dev/ttyS1
StandardError=inherit

[Install]
WantedBy=multi-user.target
`;
const NAME = "dns11-vm.service";
/** The tests start engines of their own, and nothing is on the network. */
const MASKED = ["docker.service", "docker.socket", "containerd.service", "apt-daily.timer", "apt-daily-upgrade.timer"];
const UNITS = "etc/systemd/system";

export interface Disk {
  readonly image: string;
  readonly kernel: string;
  readonly initrd: string;
}

export async function diskOf(machine: Machine): Promise<Disk> {
  const { name, suite, backports } = machine;
  // Newer kernels need a newer one than the release has.
  const base = backports === undefined ? [] : [`linux-base/${backports}`];
  const packages = [...packagesOf(suite), ...base, await kernelPackage(machine)].join();
  const sources = backports === undefined ? [] : [`deb ${debianMirror()} ${backports} main`];
  const rootfs = await cachedRootfs(`vm-${name}`, suite, packages, sources);
  const image = join(rootfs, "..", `vm-${name}.ext4`);
  if (!existsSync(image)) await makeImage(rootfs, image);
  const boot = join(rootfs, "boot");
  const file = (start: string): string => join(boot, readdirSync(boot).find((each) => each.startsWith(start)) ?? start);
  return { image, kernel: file("vmlinuz-"), initrd: file("initrd.img-") };
}

async function makeImage(rootfs: string, image: string): Promise<void> {
  const units = join(rootfs, UNITS);
  const wants = join(units, "multi-user.target.wants");
  mkdirSync(wants, { recursive: true });
  writeFileSync(join(units, NAME), UNIT);
  for (const [link, target] of [
    [join(wants, NAME), `../${NAME}`],
    ...MASKED.map((unit) => [join(units, unit), "/dev/null"]),
  ]) {
    rmSync(link ?? "", { force: true });
    symlinkSync(target ?? "", link ?? "");
  }
  await makeDisk(rootfs, `${image}.partial`, SIZE);
  renameSync(`${image}.partial`, image);
}

/** A file system with what is in a folder. */
export async function makeDisk(folder: string, image: string, size: string): Promise<void> {
  rmSync(image, { force: true });
  const words = ["-q", "-t", "ext4", "-d", folder, image, size];
  stdoutOf(await run("mke2fs", words, { timeoutMs: TIMEOUT_MS }), "mke2fs");
}

/** The name of the newest kernel of a version; for a release's own kernel the package that depends on it. */
async function kernelPackage({ suite, backports, kernel }: Machine): Promise<string> {
  if (kernel === undefined) return "linux-image-cloud-amd64";
  const list = `${debianMirror()}/dists/${backports ?? suite}/main/binary-amd64/Packages.xz`;
  const command = `curl -fsS "$1" | xz -d | sed -n 's/^Package: \\(linux-image-[^ ]*-cloud-amd64\\)$/\\1/p'`;
  const names = stdoutOf(await run("sh", ["-c", command, "sh", list], { timeoutMs: TIMEOUT_MS }), "curl").split("\n");
  const found = names.filter((each) => each.startsWith(`linux-image-${kernel}.`)).toSorted(byVersion);
  const newest = found.at(-1);
  if (newest === undefined) throw new Error(`no Linux ${kernel} in ${list}`);
  return newest;
}

function byVersion(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}
