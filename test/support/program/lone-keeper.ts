/** LoneKeeper: a keeper in this process whose main process has ended, and that refuses one namespace, or more. */
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { HeldNamespace } from "../../../src/base/model/held-namespace.ts";
import { Keeper } from "../../../src/keeper/keeper.ts";
import { PeerProcess } from "../../../src/keeper/peer-process.ts";
import { Predecessor } from "../../../src/keeper/predecessor.ts";
import { type ToKeeper, encode } from "../../../src/keeper/protocol.ts";
import { Channel, channelPair, listenAt } from "../../../src/kernel/channel.ts";
import { NetlinkMemory } from "../../../src/kernel/netlink-socket.ts";
import { inTime, waitFor } from "../rig/wait.ts";

export class LoneKeeper {
  readonly socketPath: string;
  readonly events: string[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), "d11-lone-"));
  readonly #ran: Promise<void>;

  private constructor(theirs: number) {
    this.socketPath = join(this.#folder, "keeper.sock");
    const keeper = new Keeper({
      main: new PeerProcess(new Channel(theirs), 0),
      listener: listenAt(this.socketPath),
      memory: new NetlinkMemory(),
      onEvent: (about, text) => this.events.push(`${text}: ${JSON.stringify(about)}`),
      onAlone: () => undefined,
    });
    this.#ran = keeper.run();
  }

  /** `prepare` is what its main process does before it ends. */
  static async start(prepare: (main: Channel, socketPath: string) => Promise<void> | void): Promise<LoneKeeper> {
    const [ours, theirs] = channelPair();
    const main = new Channel(ours);
    const keeper = new LoneKeeper(theirs);
    await prepare(main, keeper.socketPath);
    main.close();
    await waitFor("the keeper to be alone", () => (keeper.events.length > 0 ? true : undefined));
    return keeper;
  }

  /** As soon as it has dealt with the one before. */
  async find(): Promise<Predecessor> {
    return await waitFor("the keeper", async () => await Predecessor.find(this.socketPath).catch(() => undefined));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.find()).endKeeper();
    await inTime(this.#ran, "the keeper's end");
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Has the keeper hold a namespace of this id, without sockets. */
export function hold(channel: Channel, key: number, id: string): void {
  const netlink = openSync("/dev/null", "r");
  send(channel, { is: "hold", key, namespace: { ...heldOf(id), netlink } });
  closeSync(netlink);
}

export function send(channel: Channel, message: ToKeeper): void {
  const { bytes, descriptors } = encode(message);
  channel.send(bytes, descriptors);
}

export function heldOf(id: string): Omit<HeldNamespace, "netlink"> {
  const none = { tables: [], spared: [], pairs: [], programs: [], gate: undefined };
  return { id, zone: 1, ...none, isOwned: false, isLocked: false, alone: "refuse" };
}
