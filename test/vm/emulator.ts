/**
 * Emulator: boots a machine with QEMU, and returns what runs inside prints. It has no network, and its disks are as before
 * afterwards. The processor is emulated: docs/internals/tests.md says what happened with KVM.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

import { hold } from "../support/rig/reaper.ts";
import { textOf } from "../support/rig/text-of.ts";
import type { Disk } from "./disk.ts";

const MEMORY = "3G";
const PROCESSORS = "2";
const TIMEOUT_MS = 2_400_000;
const KERNEL_WORDS = "root=/dev/vda rw console=ttyS0 panic=-1 fsck.mode=skip mitigations=off audit=0 quiet";

/** What the program inside printed, and the console. */
export interface Boot {
  readonly printed: string;
  readonly console: string;
  readonly seconds: number;
}

export async function boot({ image, kernel, initrd }: Disk, checkout: string, folder: string): Promise<Boot> {
  const [printed, log] = [join(folder, "printed"), join(folder, "console")];
  const drive = (file: string): string[] => ["-drive", `file=${file},if=virtio,format=raw,snapshot=on,cache=unsafe`];
  const words = [
    ...["-accel", "tcg,thread=multi,tb-size=1024", "-cpu", "max", "-m", MEMORY, "-smp", PROCESSORS],
    ...["-display", "none", "-no-reboot", "-nic", "none"],
    ...["-kernel", kernel, "-initrd", initrd, "-append", KERNEL_WORDS],
    ...[...drive(image), ...drive(checkout)],
    ...["-serial", `file:${log}`, "-serial", `file:${printed}`],
  ];
  const startedMs = performance.now();
  const child = spawn("qemu-system-x86_64", words, { stdio: ["ignore", "inherit", "inherit"] });
  hold({ id: `d11-vm-${child.pid ?? 0}`, folder });
  const timer = setTimeout(() => child.kill("SIGKILL"), TIMEOUT_MS);
  try {
    await once(child, "close");
  } finally {
    clearTimeout(timer);
    child.kill("SIGKILL");
  }
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  return { printed: textOf(printed), console: textOf(log), seconds };
}
