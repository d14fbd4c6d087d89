/**
 * Owns one network namespace made for a test, so that no packet of a test ever reaches a real interface. Programs enter
 * it with nsenter: `ip netns exec` mounts a fresh /sys over the machine's and so hides the control groups.
 */
import type { CommandOptions, CommandResult } from "../program/command.ts";
import { check, run } from "../program/command.ts";
import { netnsPathOf } from "./leftovers.ts";
import { hold, removeTracked } from "./reaper.ts";

/** Whatever a program can be started in: a namespace, an engine, a container. */
export interface NetworkContext {
  enter(command: string, args?: readonly string[], options?: CommandOptions): Promise<CommandResult>;
}

let made = 0;

/** Names stay apart between test files that run at the same time by the process, within a file by the count. */
export function uniqueName(): string {
  made += 1;
  return `d11-${process.pid}-${made}`;
}

export function inNetns(path: string, command: string, args: readonly string[] = []): string[] {
  return ["nsenter", `--net=${path}`, "--", command, ...args];
}

export async function makeNetns(name: string): Promise<void> {
  await check("ip", ["netns", "add", name]);
  await check("ip", ["-n", name, "link", "set", "lo", "up"]);
}

/** An address on loopback is enough for a server that containers reach: their packets come in by the bridge. */
export async function addAddress(netnsPath: string, address: string): Promise<void> {
  const prefix = address.includes(":") ? 128 : 32;
  // A zone says which link the address is on; here it is always lo.
  const bare = address.split("%", 1)[0] ?? "";
  const args = ["address", "replace", `${bare}/${prefix}`, "dev", "lo", ...(prefix === 128 ? ["nodad"] : [])];
  const [command = "", ...rest] = inNetns(netnsPath, "ip", args);
  await check(command, rest);
}

export class Netns implements AsyncDisposable, NetworkContext {
  readonly name: string;

  private constructor(name: string) {
    this.name = name;
  }

  static async create(): Promise<Netns> {
    const netns = new Netns(uniqueName());
    hold({ id: netns.name });
    try {
      await makeNetns(netns.name);
    } catch (error) {
      await netns[Symbol.asyncDispose]();
      throw error;
    }
    return netns;
  }

  get netnsPath(): string {
    return netnsPathOf(this.name);
  }

  async enter(command: string, args: readonly string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
    const [first = "", ...rest] = inNetns(this.netnsPath, command, args);
    return await run(first, rest, options);
  }

  /** Ends every process that still runs in it, for a namespace lives as long as one of them does. */
  async [Symbol.asyncDispose](): Promise<void> {
    await removeTracked({ id: this.name });
  }
}
