/** WholeMachine: a Debian release with its kernel, which runs the tests of a checkout. It has no network, and its disks are as before afterwards. */
import { join } from "node:path";

import { textOf } from "../support/rig/text-of.ts";
import { diskOf } from "./disk.ts";
import { type Architecture, emulate } from "./emulator.ts";
import type { Kernel } from "./machines.ts";
import { type Outcome, outcomesIn } from "./outcome.ts";

/** One processor: with a clock that counts instructions Linux 6.1 does not come to the end of starting a second one. */
const MACHINE = ["-m", "3G"];
/** All of the tests, on a host that does much else. */
const TIMEOUT_MS = 4 * 3_600_000;
const KERNEL_WORDS = ["root=/dev/vda", "rw", "fsck.mode=skip", "mitigations=off", "audit=0"];

const disk = (file: string): readonly string[] => [
  "-drive",
  `file=${file},if=virtio,format=raw,snapshot=on,cache=unsafe`,
];

/** The device that the unit in disk.ts prints on. */
const printer: Readonly<Record<Architecture, (file: string) => readonly string[]>> = {
  amd64: (file) => ["-serial", `file:${file}`],
  arm64: (file) => [
    ...["-chardev", `file,id=printed,path=${file}`],
    ...["-device", "virtio-serial-pci", "-device", "virtconsole,chardev=printed"],
  ],
};

export interface MachineRun {
  readonly outcomes: readonly Outcome[];
  /** What the tests printed, and the console. */
  readonly log: string;
}

export async function runMachine(machine: Kernel, checkout: string, folder: string): Promise<MachineRun> {
  const { architecture } = machine;
  const { image, kernel, initrd } = await diskOf(machine);
  const printed = join(folder, "printed");
  const devices = [...MACHINE, ...disk(image), ...disk(checkout), ...printer[architecture](printed)];
  const started = { kernel, initrd, kernelWords: KERNEL_WORDS, devices, timeoutMs: TIMEOUT_MS };
  const console = await emulate(architecture, started, folder);
  const text = textOf(printed);
  return { outcomes: outcomesIn(text), log: `${text}\n${console}` };
}
