/**
 * Predecessor: whoever serves until now, as its successor sees it: by way of its keeper, which has it stand still and hands
 * over what it served by. Until the successor says that it serves, everything can still go back.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { KEEPER_LIMITS } from "./limits.ts";
import { type Channel, connectAt } from "../kernel/channel.ts";
import { closeQuietly } from "../kernel/libc.ts";
import { Fault, codeOf } from "../base/lib/fault.ts";
import type { HeldNamespace } from "../base/model/held-namespace.ts";
import { closeDescriptors } from "./held-descriptors.ts";
import { type FromKeeper, PROTOCOL_VERSION, type ToKeeper, decodeFromKeeper, encode } from "./protocol.ts";

const LOOK_EVERY_MS = 1;
/** Nobody was there, or is any more. */
const ABSENT: ReadonlySet<string | undefined> = new Set(["ENOENT", "ECONNREFUSED"]);

export class Predecessor {
  readonly channel: Channel;
  /** The keeper's process, as that sees itself. */
  readonly keeper: number;
  /** The process that serves; 0 where that cannot be told. */
  readonly main: number;
  /** Whether it speaks as we do; with one that does not there is nothing more to say. */
  readonly isSameVersion: boolean;

  private constructor(channel: Channel, { keeper, main, version }: Extract<FromKeeper, { is: "hello" }>) {
    this.channel = channel;
    this.keeper = keeper;
    this.main = main;
    this.isSameVersion = version === PROTOCOL_VERSION;
  }

  /** undefined where nobody serves, or nobody keeps. */
  static async find(socketPath: string): Promise<Predecessor | undefined> {
    let channel;
    try {
      channel = connectAt(socketPath);
    } catch (error) {
      if (ABSENT.has(codeOf(error))) return undefined;
      throw error;
    }
    try {
      say(channel, { is: "hello", version: PROTOCOL_VERSION });
      const hello = await heard(channel, performance.now() + KEEPER_LIMITS.yieldMs);
      if (hello?.is !== "hello") throw unheard("it does not answer");
      return new Predecessor(channel, hello);
    } catch (error) {
      channel.close();
      throw error;
    }
  }

  /** Has it stand still, and returns what it served by, by namespace: ours from now on, to be closed or to be used. */
  async take(): Promise<Map<string, HeldNamespace>> {
    const taken = new Map<string, HeldNamespace>();
    const deadlineMs = performance.now() + KEEPER_LIMITS.takeMs;
    try {
      say(this.channel, { is: "take" });
      for (;;) {
        const message = await heard(this.channel, deadlineMs);
        if (message?.is === "held") taken.set(message.namespace.id, message.namespace);
        else if (message?.is === "all" && message.count === taken.size) return taken;
        else throw unheard(message?.is === "refused" ? message.reason : "what it served by did not arrive whole");
      }
    } catch (error) {
      for (const namespace of taken.values()) closeDescriptors(namespace);
      this.channel.close();
      throw error;
    }
  }
}

function say(channel: Channel, message: ToKeeper): void {
  const { bytes, descriptors } = encode(message);
  channel.send(bytes, descriptors);
}

/** The next message; undefined for one that is none. Throws where nothing comes any more. */
async function heard(channel: Channel, deadlineMs: number): Promise<FromKeeper | undefined> {
  for (;;) {
    const packet = channel.receive();
    if (packet === "end") throw unheard("its keeper ended, or is busy with another one");
    if (packet !== "nothing") {
      const message = decodeFromKeeper(packet);
      if (message?.is !== "held") for (const fd of packet.descriptors) closeQuietly(fd);
      if (message?.is !== "alive") return message;
    } else if (performance.now() > deadlineMs) throw unheard("it does not answer");
    else await sleep(LOOK_EVERY_MS);
  }
}

function unheard(reason: string): Fault {
  return new Fault("NOT_HANDED_OVER", `The dns11 that serves did not hand over: ${reason}`, {
    remedy: "It serves on. Try again, or stop it first; Docker's own resolver answers in between.",
  });
}
