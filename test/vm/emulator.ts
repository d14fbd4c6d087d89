/**
 * Emulator: runs a machine in QEMU until it ends. Its clock counts instructions (`-icount`): however slow or busy the host is, no time limit
 * inside ends early because of that. docs/internals/tests.md says what that costs, and what happened with KVM.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

import { hold, release } from "../support/rig/reaper.ts";
import { textOf } from "../support/rig/text-of.ts";

/** By Debian's name. */
export type Architecture = "amd64" | "arm64";

interface Emulated {
  readonly program: string;
  readonly words: readonly string[];
  /** The device inside that is the first serial port. */
  readonly console: string;
}

const EMULATED: Readonly<Record<Architecture, Emulated>> = {
  amd64: { program: "qemu-system-x86_64", words: ["-cpu", "max"], console: "ttyS0" },
  // Without pauth-impdef most of the time goes into signatures of pointers.
  arm64: {
    program: "qemu-system-aarch64",
    words: ["-machine", "virt", "-cpu", "max,pauth-impdef=on"],
    console: "ttyAMA0",
  },
};
/** An instruction takes a nanosecond. So the processor inside is as fast as a real one, by its own clock. */
const CLOCK = ["-accel", "tcg,tb-size=1024", "-icount", "shift=0"];
const BARE = ["-display", "none", "-no-reboot", "-nic", "none"];

export interface Started {
  readonly kernel: string;
  readonly initrd: string;
  readonly kernelWords: readonly string[];
  /** Disks, ports and memory. */
  readonly devices: readonly string[];
  readonly timeoutMs: number;
}

/** Returns what the machine has written to its console. `folder` is removed if this process is killed. */
export async function emulate(architecture: Architecture, started: Started, folder: string): Promise<string> {
  const { program, words, console: device } = EMULATED[architecture];
  const { kernel, initrd, kernelWords, devices, timeoutMs } = started;
  const log = join(folder, "console");
  const append = [`console=${device}`, "panic=-1", "quiet", ...kernelWords].join(" ");
  const machine = [...CLOCK, ...words, ...BARE, "-kernel", kernel, "-initrd", initrd, "-append", append];
  const all = [...machine, "-serial", `file:${log}`, ...devices];
  const child = spawn(program, all, { stdio: ["ignore", "inherit", "inherit"] });
  const id = `d11-vm-${child.pid ?? 0}`;
  hold({ id, folder });
  const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
  try {
    await once(child, "close");
  } finally {
    clearTimeout(timer);
    child.kill("SIGKILL");
    release({ id });
  }
  return textOf(log);
}
