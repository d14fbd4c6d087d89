/**
 * Disk: the root file system of a machine as an image for the emulator, with its kernel beside it. It is built from Debian's packages, once
 * for each list of them, and cached: remove both to get newer packages.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { cachedRootfs } from "../support/engine/suite.ts";
import { run, stdoutOf } from "../support/program/command.ts";
import type { Architecture } from "./emulator.ts";
import { backportsOf, kernelPackages } from "./kernel-package.ts";
import { type Kernel, packagesOf } from "./machines.ts";

const SIZE = "4G";
const TIMEOUT_MS = 600_000;
/** The device on which the tests print: arm64 has no second serial port. */
const PRINTER: Readonly<Record<Architecture, string>> = { amd64: "ttyS1", arm64: "hvc0" };
/** The second disk is the checkout. */
const unitOf = (architecture: Architecture): string => `[Unit]
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
StandardOutput=file:/dev/${PRINTER[architecture]}
StandardError=inherit

[Install]
WantedBy=multi-user.target
`;
const NAME = "dns11-vm.service";
/** The tests start engines of their own, nothing is on the network, and nobody logs in at what they print on. */
const MASKED = [
  ...["docker.service", "docker.socket", "containerd.service", "apt-daily.timer", "apt-daily-upgrade.timer"],
  "serial-getty@hvc0.service",
];
const UNITS = "etc/systemd/system";

export interface Disk {
  readonly image: string;
  readonly kernel: string;
  readonly initrd: string;
}

/** A machine without a program that a test starts fails in ways that look like the kernel's. */
export function diskName({ name, suite, architecture }: Kernel): string {
  const contents = [packagesOf(suite), unitOf(architecture), MASKED];
  return `vm-${name}-${createHash("sha256").update(JSON.stringify(contents)).digest("hex").slice(0, 8)}`;
}

export async function diskOf(machine: Kernel): Promise<Disk> {
  const { suite, architecture } = machine;
  const packages = async (): Promise<string> => [...packagesOf(suite), ...(await kernelPackages(machine))].join();
  const name = diskName(machine);
  const rootfs = await cachedRootfs(name, suite, packages, { sources: backportsOf(machine), architecture });
  const image = join(rootfs, "..", `${name}.ext4`);
  if (!existsSync(image)) await makeImage(rootfs, image, architecture);
  const boot = join(rootfs, "boot");
  const file = (start: string): string => join(boot, readdirSync(boot).find((each) => each.startsWith(start)) ?? start);
  return { image, kernel: file("vmlinuz-"), initrd: file("initrd.img-") };
}

async function makeImage(rootfs: string, image: string, architecture: Architecture): Promise<void> {
  const units = join(rootfs, UNITS);
  const wants = join(units, "multi-user.target.wants");
  mkdirSync(wants, { recursive: true });
  writeFileSync(join(units, NAME), unitOf(architecture));
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
