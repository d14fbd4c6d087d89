/**
 * Predecessor: the old process of a takeover, as the new one sees it: through the keeper, which has it pause and passes
 * on what it serves with. Until the new process confirms that it serves, everything can still be reverted.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { KEEPER_LIMITS } from "./limits.ts";
import { type Channel, connectAt } from "../kernel/channel.ts";
import { closeQuietly } from "../kernel/libc.ts";
import { Fault, codeOf, reasonOf } from "../base/lib/fault.ts";
import type { HeldNamespace } from "../base/model/held-namespace.ts";
import { closeDescriptors } from "./held-descriptors.ts";
import { type FromKeeper, PROTOCOL_VERSION, type ToKeeper, decodeFromKeeper, encode } from "./protocol.ts";
import { readlinkSync } from "node:fs";
import { procText } from "../kernel/process.ts";

const POLL_MS = 1;
const RETRY_MS = 100;
/** There was no keeper, or there is none any more: also where the path is too long for a socket, or leads through a file. */
export const ABSENT: ReadonlySet<string | undefined> = new Set(["ENOENT", "ECONNREFUSED", "ENOTDIR", "BAD_SOCKET"]);

export class Predecessor {
  readonly channel: Channel;
  /** The keeper's pid, as the keeper sees it. */
  readonly keeper: number;
  /** The pid of the process that serves; 0 where unknown. */
  readonly main: number;
  /** How many namespaces the keeper refuses by itself, because no process serves. */
  readonly refusing: number;
  /** Whether it has our protocol version; with another version no further message is possible. */
  readonly isSameVersion: boolean;

  private constructor(channel: Channel, { keeper, main, refusing, version }: Extract<FromKeeper, { is: "hello" }>) {
    this.channel = channel;
    this.keeper = keeper;
    this.main = main;
    this.refusing = refusing;
    this.isSameVersion = version === PROTOCOL_VERSION;
  }

  /** undefined where no process serves, or where it has no keeper. */
  static async find(socketPath: string): Promise<Predecessor | undefined> {
    let channel;
    try {
      channel = connectAt(socketPath);
    } catch (error) {
      if (ABSENT.has(codeOf(error))) return undefined;
      throw error;
    }
    try {
      send(channel, { is: "hello", version: PROTOCOL_VERSION });
      const hello = await nextMessage(channel, performance.now() + KEEPER_LIMITS.yieldMs);
      if (hello?.is !== "hello") throw notHandedOver("it does not respond");
      return new Predecessor(channel, hello);
    } catch (error) {
      channel.close();
      throw error;
    }
  }

  /**
   * The same where a keeper is expected only if it refuses queries alone. One that is about to end may close the connection, so this
   * tries again. Throws if something is there and says nothing: it may refuse queries, and must not lose its socket.
   */
  static async findAlone(socketPath: string): Promise<Predecessor | undefined> {
    const deadlineMs = performance.now() + KEEPER_LIMITS.yieldMs;
    for (;;) {
      try {
        return await Predecessor.find(socketPath);
      } catch (error) {
        if (codeOf(error) === "NOT_HANDED_OVER" && performance.now() < deadlineMs) await sleep(RETRY_MS);
        else throw unreachable(socketPath, error);
      }
    }
  }

  /**
   * Has a keeper that refuses alone hand back what it holds, and exit; or only exit, if everything was taken from it. Resolves when
   * it has heard that.
   */
  async endKeeper({ hasTaken = false } = {}): Promise<void> {
    if (hasTaken) send(this.channel, { is: "taken" });
    send(this.channel, { is: "end" });
    const untilMs = performance.now() + KEEPER_LIMITS.yieldMs;
    while (this.channel.receive() !== "end" && performance.now() < untilMs) await sleep(POLL_MS);
    this.channel.close();
  }

  /** Has it pause, and returns what it served with, by namespace. The caller owns the descriptors. */
  async take(): Promise<Map<string, HeldNamespace>> {
    const taken = new Map<string, HeldNamespace>();
    let count = 0;
    const deadlineMs = performance.now() + KEEPER_LIMITS.takeMs;
    try {
      send(this.channel, { is: "take" });
      for (;;) {
        const message = await nextMessage(this.channel, deadlineMs);
        if (message?.is === "held") {
          count++;
          const { id } = message.namespace;
          // One that is attached again may be held twice for a moment; the later one counts.
          const before = taken.get(id);
          if (before !== undefined) closeDescriptors(before);
          taken.set(id, message.namespace);
        } else if (message?.is === "all" && message.count === count) return taken;
        else throw notHandedOver(message?.is === "refused" ? message.reason : "its descriptors arrived incomplete");
      }
    } catch (error) {
      for (const namespace of taken.values()) closeDescriptors(namespace);
      this.channel.close();
      throw error;
    }
  }
}

function send(channel: Channel, message: ToKeeper): void {
  const { bytes, descriptors } = encode(message);
  channel.send(bytes, descriptors);
}

/** The next message; undefined for one that cannot be decoded. Throws if none arrives any more. */
async function nextMessage(channel: Channel, deadlineMs: number): Promise<FromKeeper | undefined> {
  for (;;) {
    const packet = channel.receive();
    if (packet === "end") throw notHandedOver("its keeper exited, or another new process is taking over");
    if (packet !== "nothing") {
      const message = decodeFromKeeper(packet);
      if (message?.is !== "held") for (const fd of packet.descriptors) closeQuietly(fd);
      if (message?.is !== "alive") return message;
    } else if (performance.now() > deadlineMs) throw notHandedOver("it does not respond");
    else await sleep(POLL_MS);
  }
}

function unreachable(socketPath: string, error: unknown): Fault {
  return new Fault("KEEPER_UNREACHABLE", `The keeper at "${socketPath}" cannot be asked: ${reasonOf(error)}`, {
    remedy:
      "It may refuse the queries of containers with an enforced policy. Retry; if it stays so, end the process keeper-main.js with this path.",
  });
}

function notHandedOver(reason: string): Fault {
  return new Fault("NOT_HANDED_OVER", `The takeover from the running dns11 failed: ${reason}`, {
    remedy:
      "Retry. If it still serves, you can also stop it first. Docker's own resolver answers while nothing serves.",
  });
}

/** The operator's shell is in the mount namespace of the first process, whatever a service manager did for the service. */
const FIRST_PROCESS = 1;

/**
 * Whether a process that asks for a takeover may have it. Root of a container that has the state directory mounted can
 * connect to the keeper as well; it gets neither descriptors of other containers nor has dns11 pause for it.
 * Why it may not; undefined if it may: it shares our PID namespace, and our mount namespace or the first process's. While nothing
 * serves, our control group does as well: a service gets a new mount namespace with each start.
 */
export function whyNotTaker(pid: number, { mayShareGroup = false } = {}): string | undefined {
  const processes = namespaceOf(pid, "pid");
  const mounts = namespaceOf(pid, "mnt");
  if (processes === undefined || mounts === undefined) return "its namespaces cannot be read";
  if (processes !== namespaceOf("self", "pid")) return "it is in another PID namespace";
  const allowed = [namespaceOf("self", "mnt"), namespaceOf(FIRST_PROCESS, "mnt")];
  if (allowed.includes(mounts)) return undefined;
  return mayShareGroup && isInOurGroup(pid) ? undefined : "it is in another mount namespace";
}

function isInOurGroup(pid: number): boolean {
  try {
    const group = procText(`/proc/${pid}/cgroup`);
    return group !== undefined && group === procText("/proc/self/cgroup");
  } catch {
    // It has ended meanwhile.
    return false;
  }
}

/** undefined where it cannot be read. */
function namespaceOf(pid: number | "self", kind: "mnt" | "pid"): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/${kind}`);
  } catch {
    return undefined;
  }
}
