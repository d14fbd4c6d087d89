/**
 * Network namespace of a test, so that no packet of a test reaches a real interface. Programs enter it with nsenter:
 * `ip netns exec` mounts a fresh /sys, which hides the control groups.
 */
import type { CommandOptions, CommandResult } from "../program/command.ts";
import { check, run, stdoutOf } from "../program/command.ts";
import { netnsPathOf } from "./leftovers.ts";
import { GIVEN_ROOT } from "../engine/suite.ts";
import { keepPlace } from "./evidence.ts";
import { hold, removeTracked } from "./reaper.ts";

/** Where a program can be started: in a namespace, an engine or a container. */
export interface NetworkContext {
  enter(command: string, args?: readonly string[], options?: CommandOptions): Promise<CommandResult>;
}

let made = 0;

/** The process id keeps names of concurrent test files apart, the counter those within a file. */
export function uniqueName(): string {
  made += 1;
  return `d11-${process.pid}-${made}`;
}

/** An nft that is older than the one that has written a rule crashes at it, so it is that of the engine under test. */
const OWN_NFT = GIVEN_ROOT === undefined ? ["nft"] : ["chroot", GIVEN_ROOT, "nft"];

export function inNetns(path: string, command: string, args: readonly string[] = []): string[] {
  return ["nsenter", `--net=${path}`, "--", ...(command === "nft" ? OWN_NFT : [command]), ...args];
}

export async function makeNetns(name: string): Promise<void> {
  await check("ip", ["netns", "add", name]);
  await check("ip", ["-n", name, "link", "set", "lo", "up"]);
}

/** An address on loopback is enough for a server that containers reach: their packets arrive on the bridge. */
export async function addAddress(netnsPath: string, address: string): Promise<void> {
  const prefix = address.includes(":") ? 128 : 32;
  // Strip the zone: the link is always lo here.
  const bare = address.split("%", 1)[0] ?? "";
  const args = ["address", "replace", `${bare}/${prefix}`, "dev", "lo", ...(prefix === 128 ? ["nodad"] : [])];
  const [command = "", ...rest] = inNetns(netnsPath, "ip", args);
  await check(command, rest);
}

/** Does something while IPv6 is off in a namespace. */
export async function withoutIpv6(context: NetworkContext, work: () => Promise<void>): Promise<void> {
  const setOff = async (off: 0 | 1): Promise<string> =>
    stdoutOf(await context.enter("sysctl", ["-w", `net.ipv6.conf.all.disable_ipv6=${off}`]), "sysctl");
  await setOff(1);
  try {
    await work();
  } finally {
    await setOff(0);
  }
}

export class Netns implements AsyncDisposable, NetworkContext {
  readonly name: string;

  private constructor(name: string) {
    this.name = name;
    keepPlace(name, async () => (await this.enter("nft", ["list", "ruleset"])).stdout);
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

  /** Kills every process in it, because a namespace lives as long as any of them. */
  async [Symbol.asyncDispose](): Promise<void> {
    await removeTracked({ id: this.name });
  }
}
