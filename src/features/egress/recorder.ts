/**
 * Recorder: has the kernel record where containers connect to, on the host's side of their links, and reads what it has
 * recorded. Each container's sets stay until `forget`, so that the last connections of one that has ended can be read.
 */
import { codeOf, reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { attributeList, attributesIn } from "../../kernel/netlink-message.ts";
import { type NftCommand, NftSocket } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import { readPortKey } from "../../kernel/nft-table.ts";
import { EGRESS_LIMITS } from "./limits.ts";
import { NETDEV, type RecordedLink, RecordingTable, setsToRead } from "./recording-table.ts";

/** A destination that the kernel has recorded. */
export interface Recorded {
  /** In the kernel's set. */
  readonly key: Buffer;
  readonly address: Buffer;
  readonly protocol: number;
  /** 0 where the protocol has none, or the packet did not show it. */
  readonly port: number;
  /** Since the kernel has had it. */
  readonly count: number;
  /** How long ago the last one was. */
  readonly agoMs: number;
}

export interface Reading {
  readonly recorded: readonly Recorded[];
  /** What came when there was no room is missing. */
  readonly isFull: boolean;
}

/** Elements that are removed in one transaction, which holds the lock of the host's rules. */
const KEYS_AT_ONCE = 256;
/** The kernel's errors for a hook that it does not have. */
const NO_HOOK = new Set(["EOPNOTSUPP", "ENOTSUP", "EINVAL"]);

export class Recorder {
  readonly #netns: NetNamespace;
  readonly #nft: NftSocket;
  readonly #table: RecordingTable;
  /** Containers with sets in the kernel, and their links with chains there. */
  readonly #recorded = new Map<string, readonly RecordedLink[]>();
  readonly #wanted = new Map<string, readonly RecordedLink[]>();
  readonly #due = new Set<string>();
  #working: Promise<void> | undefined;
  #isClosed = false;
  /** Whether it can look at what goes to a container, and so tell answers by UDP: since Linux 5.16. */
  #tellsAnswers = true;
  /** By container: why the kernel does not record it. */
  readonly #failures = new Map<string, string>();

  private constructor(netns: NetNamespace) {
    this.#netns = netns;
    this.#nft = netns.within(() => new NftSocket(netns.memory));
    // No two sockets of a namespace have the same port, and so no two runs the same table.
    this.#table = new RecordingTable(`dns11-egress-${this.#nft.port}`);
  }

  /** Throws where the kernel cannot. */
  static async open(netns: NetNamespace): Promise<Recorder> {
    const recorder = new Recorder(netns);
    try {
      await netns.transact(recorder.#nft, recorder.#table.create());
      return recorder;
    } catch (error) {
      recorder.close();
      throw error;
    }
  }

  get tellsAnswers(): boolean {
    return this.#tellsAnswers;
  }

  /** Why a container is not recorded although it has links. */
  failureOf(containerId: string): string | undefined {
    return this.#failures.get(containerId);
  }

  /** Whether the kernel has counted for it since `record`. */
  has(containerId: string): boolean {
    return this.#recorded.has(containerId);
  }

  /** Records the container on these links from soon on. Without links, what was recorded stays. */
  record(containerId: string, links: readonly RecordedLink[]): void {
    this.#wanted.set(containerId, links);
    this.#workSoon(containerId);
  }

  /** Drops what the kernel has of a container. */
  forget(containerId: string): void {
    if (!this.#wanted.delete(containerId)) return;
    this.#failures.delete(containerId);
    this.#workSoon(containerId);
  }

  /** Resolves when the kernel records what it should. */
  async settled(): Promise<void> {
    await this.#working;
  }

  /** The parts of reading a container; the last one is its result. */
  *read(containerId: string): Generator<void, Reading> {
    const recorded: Recorded[] = [];
    let isFull = false;
    if (!this.#recorded.has(containerId) || this.#isClosed) return { recorded, isFull };
    for (const set of setsToRead(containerId)) {
      const before = recorded.length;
      // A socket of its own: transactions on the other one may be waiting.
      const reader = this.#netns.within(() => new NftSocket(this.#netns.memory));
      try {
        yield* reader.findInParts(
          {
            command: nft.NFT_MSG_GETSETELEM,
            family: NETDEV,
            select: (w) => {
              w.text(nft.NFTA_SET_ELEM_LIST_TABLE, this.#table.name);
              w.text(nft.NFTA_SET_ELEM_LIST_SET, set);
            },
          },
          (_family, attributes) => {
            const list = attributesIn(attributes).get(nft.NFTA_SET_ELEM_LIST_ELEMENTS);
            for (const [, element] of list === undefined ? [] : attributeList(list)) {
              const read = elementOf(element);
              if (read !== undefined) recorded.push(read);
            }
          },
        );
      } catch (error) {
        // It went while it was read.
        if (codeOf(error) !== "ENOENT") throw error;
      } finally {
        reader.close();
      }
      if (recorded.length - before >= EGRESS_LIMITS.kernel) isFull = true;
    }
    return { recorded, isFull };
  }

  /** Has the kernel drop what was read, so that there is room again. It counts these anew then. */
  async makeRoom(containerId: string, { recorded }: Reading): Promise<void> {
    if (!this.#recorded.has(containerId) || this.#isClosed) return;
    for (let start = 0; start < recorded.length; start += KEYS_AT_ONCE) {
      const keys = recorded.slice(start, start + KEYS_AT_ONCE).map(({ key }) => key);
      await this.#try(this.#table.removeKeys(containerId, keys));
    }
  }

  /** The kernel removes the table with the socket. */
  close(): void {
    this.#isClosed = true;
    this.#nft.close();
  }

  #workSoon(containerId: string): void {
    this.#due.add(containerId);
    this.#working ??= this.#work();
  }

  async #work(): Promise<void> {
    // In a later turn, when all that comes together is due.
    await Promise.resolve();
    while (this.#due.size > 0 && !this.#isClosed) {
      const ids = [...this.#due].slice(0, EGRESS_LIMITS.batch);
      for (const id of ids) this.#due.delete(id);
      try {
        await this.#applyAll(ids);
      } catch (error) {
        if (!this.#isClosed) guard.report(error, "netlink");
      }
    }
    this.#working = undefined;
  }

  /** In one transaction; if the kernel refuses any of it, one by one. */
  async #applyAll(ids: readonly string[]): Promise<void> {
    const steps = ids.map((id) => ({ id, links: this.#wanted.get(id) }));
    try {
      await this.#transact(steps.flatMap(({ id, links }) => this.#commandsFor(id, links)));
      for (const { id, links } of steps) this.#applied(id, links);
    } catch {
      for (const { id, links } of steps) await this.#applyOne(id, links);
    }
  }

  async #applyOne(id: string, links: readonly RecordedLink[] | undefined): Promise<void> {
    const before = this.#recorded.get(id) ?? [];
    // A link that has gone has taken its chains along, or not, depending on the kernel.
    for (const link of before) {
      if (links?.some((each) => isSame(each, link)) === true) continue;
      for (const command of this.#table.removeLink(link, this.#tellsAnswers)) await this.#try([command]);
    }
    if (links === undefined) {
      await this.#try(this.#table.removeContainer(id));
      this.#applied(id, undefined);
      return;
    }
    if (!this.#recorded.has(id)) await this.#try(this.#table.addContainer(id));
    const now = before.filter((link) => links.some((each) => isSame(each, link)));
    let failure: string | undefined;
    for (const link of links) {
      if (now.includes(link) || before.some((each) => isSame(each, link))) continue;
      const problem = await this.#tryLink(id, link);
      if (problem === undefined) now.push(link);
      else failure = problem;
    }
    this.#applied(id, now, failure);
  }

  /** Returns why it failed. */
  async #tryLink(id: string, link: RecordedLink): Promise<string | undefined> {
    const error = await this.#try(this.#table.addLink(id, link, this.#tellsAnswers));
    if (error === undefined) return undefined;
    if (!this.#tellsAnswers || !NO_HOOK.has(codeOf(error) ?? "")) return reasonOf(error);
    const second = await this.#try(this.#table.addLink(id, link, false));
    if (second !== undefined) return reasonOf(second);
    this.#tellsAnswers = false;
    return undefined;
  }

  async #try(commands: readonly NftCommand[]): Promise<unknown> {
    try {
      await this.#transact(commands);
      return undefined;
    } catch (error) {
      return error;
    }
  }

  async #transact(commands: readonly NftCommand[]): Promise<void> {
    if (commands.length > 0) await this.#netns.transact(this.#nft, commands);
  }

  #commandsFor(id: string, links: readonly RecordedLink[] | undefined): NftCommand[] {
    const before = this.#recorded.get(id);
    const gone = (before ?? []).filter((link) => links?.some((each) => isSame(each, link)) !== true);
    const removals = gone.flatMap((link) => this.#table.removeLink(link, this.#tellsAnswers));
    if (links === undefined) return before === undefined ? [] : [...removals, ...this.#table.removeContainer(id)];
    const added = links.filter((link) => before?.some((each) => isSame(each, link)) !== true);
    return [
      ...removals,
      ...(before === undefined ? this.#table.addContainer(id) : []),
      ...added.flatMap((link) => this.#table.addLink(id, link, this.#tellsAnswers)),
    ];
  }

  #applied(id: string, links: readonly RecordedLink[] | undefined, failure?: string): void {
    if (links === undefined) this.#recorded.delete(id);
    else this.#recorded.set(id, links);
    if (failure === undefined) this.#failures.delete(id);
    else this.#failures.set(id, failure);
  }
}

function isSame(a: RecordedLink, b: RecordedLink): boolean {
  // A chain stays with its link when that is renamed.
  return a.index === b.index;
}

function elementOf(bytes: Buffer): Recorded | undefined {
  const attributes = attributesIn(bytes);
  const data = attributes.get(nft.NFTA_SET_ELEM_KEY);
  const key = data && attributesIn(data).get(nft.NFTA_DATA_VALUE);
  const left = attributes.get(nft.NFTA_SET_ELEM_EXPIRATION)?.readBigUInt64BE(0);
  if (key === undefined || left === undefined) return undefined;
  // The memory that it was read into is used again.
  const own = Buffer.from(key);
  const { address, protocol, port } = readPortKey(own);
  return {
    key: own,
    address,
    protocol,
    port,
    count: packetsOf(attributes.get(nft.NFTA_SET_ELEM_EXPR)),
    agoMs: Math.max(0, EGRESS_LIMITS.kernelMs - Number(left)),
  };
}

function packetsOf(counter: Buffer | undefined): number {
  const data = counter && attributesIn(counter).get(nft.NFTA_EXPR_DATA);
  const packets = data && attributesIn(data).get(nft.NFTA_COUNTER_PACKETS);
  return packets === undefined ? 1 : Number(packets.readBigUInt64BE(0));
}
