/**
 * PolicyTable: what policed containers may reach, in the kernel, in the namespace of the Docker daemon: outside of theirs,
 * where root in a container changes nothing, and raw frames are seen.
 *
 *   a frame arrives on the machine --> netdev table: link-N      only under the container's own addresses
 *   it is for the machine, or      --> inet table: input,        an open connection passes; then the chain of its
 *   for another network                forward                   source: judge-X; networks: who is not known yet
 *                                      judge-X, refuse-X         fixed rules, open addresses; recorded and refused
 *
 * The tables outlive the process, and the next one adopts them: where the kernel can (6.9), they belong to the process's
 * socket, so that nobody flushes them, and persist; before that they are plain tables, and are made again when somebody has
 * flushed them. Open addresses end by themselves.
 */
import { CoalescedCall } from "../../../base/lib/async.ts";
import { Fault, codeOf } from "../../../base/lib/fault.ts";
import type { NetlinkMemory } from "../../../kernel/netlink-socket.ts";
import { type NftCommand, NftSocket } from "../../../kernel/nfnetlink.ts";
import * as nft from "../../../kernel/nft-constants.ts";
import type { ClosedNetwork } from "../model/policy.ts";
import { baseCommands, heldCommands, networkCommands } from "./base-rules.ts";
import {
  type PolicedContainer,
  containerCommands,
  lengthsOf,
  removalCommands,
  type PolicedLink,
  linkCommands,
} from "./container-rules.ts";
import { type NftTable, type SetElement, portKey, readPortKey } from "../../../kernel/nft-table.ts";
import { NftWatch } from "../../../kernel/nft-watch.ts";
import {
  ADDRESS_LENGTHS,
  type AddressLength,
  addressSet,
  heldSet,
  judgingChain,
  linkChain,
  linkIndexOf,
  portSet,
  seenSet,
  shortId,
  whoMap,
  TABLES,
  TABLE_NAME,
  type TableFamily,
} from "./layout.ts";
import { PROTOCOLS, lengthOf } from "./matches.ts";
import { OpenAddresses, OpeningRounds } from "./open-addresses.ts";
import { type NetlinkWriter, attributeList, attributesIn, textOf } from "../../../kernel/netlink-message.ts";

export interface PolicyTableParts {
  readonly memory: NetlinkMemory;
  /** Runs in the namespace of the Docker daemon. */
  readonly within: <T>(work: () => T) => T;
  /** The socket that the process before this one hands over with its tables. */
  readonly inherited?: number;
  /** Addresses of this machine at which dns11 answers. */
  readonly resolvers: readonly Uint8Array[];
  /** Networks that are closed in the same step, in place of those that were. */
  readonly networks?: readonly ClosedNetwork[];
  /**
   * Others have removed the tables: they are there again, or `error` says why not, and each container has to be applied again.
   * Without it, nobody watches.
   */
  readonly onLost?: (error?: unknown) => void;
}

/** An address to open; with every port where none is named. */
export interface Opening {
  readonly address: Uint8Array;
  readonly protocol?: "tcp" | "udp";
  readonly port?: number;
}

/** Where a refused packet was sent to. */
export interface RefusedAddress {
  readonly address: Uint8Array;
  readonly protocol: number;
  readonly port: number;
}

/** What the tables have of one container. */
interface Installed {
  readonly open: OpenAddresses;
  lengths: readonly AddressLength[];
  /** Its own addresses, as keys, and whether it reaches the machine. */
  sources: ReadonlyMap<string, boolean>;
  links: ReadonlySet<number>;
  /** Of the run that it was policed in; undefined if an earlier process did. */
  readonly startedAt?: string;
  /** Others have removed the tables, and the kernel has none of it. */
  isLost?: boolean;
}

/** How often the tables are looked for, at most, while others change theirs. */
const LOOK_EVERY_MS = 10;

/** Errors of a kernel that does not know tables which persist, or has one that does not. */
const CANNOT_OWN = new Set(["EOPNOTSUPP", "ENOTSUP", "EINVAL"]);

/** Errors where there is no such table, or a kernel without any. */
const NO_TABLES = new Set(["ENOENT", "EPROTONOSUPPORT", "EOPNOTSUPP", "ENOTSUP", "EINVAL"]);

export class PolicyTable implements Disposable {
  readonly #nft: NftSocket;
  /** Transactions may be under way on the other one. */
  readonly #readingNft: NftSocket;
  readonly #reader: TableReader;
  readonly #rounds: OpeningRounds;
  readonly #installed = new Map<string, Installed>();
  /** Whether nobody else changes the tables while this process runs. */
  readonly isOwned: boolean;
  readonly #parts: PolicyTableParts;
  /** Reports changes of others, where they may remove the tables. */
  readonly #watch: NftWatch | undefined;
  #networks: readonly ClosedNetwork[];
  /** Source addresses from which nothing is to pass, as keys, and those of them that the kernel has. */
  #toHold: ReadonlySet<string> = new Set();
  #held: ReadonlySet<string> = new Set();
  /** Those of them that an earlier process left. */
  #heldBefore: ReadonlySet<string> = new Set();
  /** Of the tables that hold what is installed. */
  #identity: string | undefined;
  #lastChange: Promise<unknown> = Promise.resolve();

  private constructor(parts: PolicyTableParts, socket: NftSocket, readingSocket: NftSocket, isOwned: boolean) {
    this.#parts = parts;
    this.#nft = socket;
    this.#readingNft = readingSocket;
    this.isOwned = isOwned;
    this.#networks = parts.networks ?? [];
    this.#reader = new TableReader(readingSocket);
    this.#rounds = new OpeningRounds(async (commands) => await this.#nft.transact(commands));
    this.#watch = isOwned || parts.onLost === undefined ? undefined : this.#watchOthers();
    try {
      this.#identity = this.#reader.identity();
      this.#adopt();
    } catch (error) {
      // Others have removed them already.
      this.#watch?.close();
      throw error;
    }
  }

  /** Creates the tables, or adopts those that are there with all that they hold. */
  static async open(parts: PolicyTableParts): Promise<PolicyTable> {
    const { memory, within, inherited, resolvers, networks } = parts;
    const closing = networks === undefined ? [] : networkCommands(networks);
    const socket = within(() => new NftSocket(memory, inherited));
    let readingSocket: NftSocket | undefined;
    try {
      readingSocket = within(() => new NftSocket(memory));
      const isOwned = await isCreatedOwned(socket, (flags) => [...baseCommands(flags, resolvers), ...closing]);
      return new PolicyTable(parts, socket, readingSocket, isOwned);
    } catch (error) {
      socket.close();
      readingSocket?.close();
      throw error;
    }
  }

  /** Removes the tables that an earlier process left, if there are any: everything is open then. Returns whether. */
  static async removeLeft({ memory, within }: Pick<PolicyTableParts, "memory" | "within">): Promise<boolean> {
    const socket = within(() => new NftSocket(memory));
    let isRemoved = false;
    try {
      // One may be there without the other, if somebody has removed that.
      for (const table of Object.values(TABLES)) isRemoved = (await isDeleted(socket, table)) || isRemoved;
      return isRemoved;
    } finally {
      socket.close();
    }
  }

  /** The shortened ids of the containers in the tables that are there, whoever has made them. */
  static containersLeft(parts: Pick<PolicyTableParts, "memory" | "within">): string[] {
    return chainsLeft(parts).flatMap((chain) => /^judge-(.+)$/.exec(chain)?.[1] ?? []);
  }

  /** Whether there are tables, whoever has made them. */
  static exists(parts: Pick<PolicyTableParts, "memory" | "within">): boolean {
    return chainsLeft(parts).length > 0;
  }

  /** Whoever takes over the tables needs it. */
  get fd(): number {
    return this.#nft.fd;
  }

  /** The ids of the containers in it, shortened. */
  get containers(): Iterable<string> {
    return this.#installed.keys();
  }

  /** Networks whose containers are refused everything until they are known. */
  async setNetworks(networks: readonly ClosedNetwork[]): Promise<void> {
    this.#networks = networks;
    await this.#inTurn(async () => {
      await this.#restore();
      await this.#nft.transact(networkCommands(networks));
    });
  }

  /**
   * Drops what these addresses send, and no others but those that an earlier process left, where they are kept. An address of a
   * container that is policed has its rules.
   */
  async hold(addresses: readonly Uint8Array[], keepsOthers = false): Promise<void> {
    await this.#inTurn(async () => {
      await this.#restore();
      this.#toHold = new Set([...addresses.map(keyOf), ...(keepsOthers ? this.#heldBefore : [])]);
      const held = this.#held;
      const changes = this.#heldChanges();
      if (changes.length === 0) return;
      try {
        await this.#nft.transact(changes);
      } catch (error) {
        this.#held = held;
        throw error;
      }
    });
  }

  /** What it takes to hold what is to be held; it is taken for done. */
  #heldChanges(): NftCommand[] {
    const isPoliced = (key: string): boolean =>
      [...this.#installed.values()].some(({ sources, isLost }) => isLost !== true && sources.has(key));
    const wanted = new Set([...this.#toHold].filter((key) => !isPoliced(key)));
    const ended = [...this.#held].filter((key) => !wanted.has(key));
    const begun = [...wanted].filter((key) => !this.#held.has(key));
    this.#held = wanted;
    return [...heldCommands("remove", ended.map(bytesOf)), ...heldCommands("add", begun.map(bytesOf))];
  }

  /** Polices a container, or does it anew: what is open stays open unless it has been started again, and nothing passes in between. */
  async apply(container: PolicedContainer, links: readonly PolicedLink[]): Promise<void> {
    await this.#inTurn(async () => {
      await this.#restore();
      await this.#apply(container, links);
    });
  }

  /** The container is gone, or has no policy any more. */
  async remove(containerId: string): Promise<void> {
    await this.#inTurn(async () => await this.#remove(containerId));
  }

  async #apply(known: PolicedContainer, links: readonly PolicedLink[]): Promise<void> {
    const id = shortId(known.id);
    const before = this.#installed.get(id);
    const container = known.isComplete ? known : withAddressesOf(before, known);
    const inKernel = before?.isLost === true ? undefined : before;
    const lengths = [...new Set([...(inKernel?.lengths ?? []), ...lengthsOf(container)])];
    const sources = new Map(container.addresses.map((address) => [keyOf(address), container.reachesHost]));
    const others = [...this.#installed].filter(([other]) => other !== id);
    const taken = others.flatMap(([, { sources: theirs, isLost }]) =>
      isLost === true ? [] : [...theirs].filter(([key]) => sources.has(key)),
    );
    // What stays is not touched. Older kernels may miss an element for a moment that is removed and added in one transaction, or refuse
    // one that is there.
    const ended = [...(inKernel?.sources ?? [])].filter(([key, reachesHost]) => sources.get(key) !== reachesHost);
    const begun = [...sources].filter(([key, reachesHost]) => inKernel?.sources.get(key) !== reachesHost);
    const isAnotherRun = before?.startedAt !== undefined && before.startedAt !== known.startedAt;
    const open = before === undefined || isAnotherRun ? new OpenAddresses(id) : before.open;
    await this.#nft.transact([
      ...containerCommands(container),
      ...(isAnotherRun ? open.none(lengths) : []),
      ...(before?.isLost === true ? open.again(lengths, performance.now()) : []),
      ...this.#whoCommands("remove", id, [...taken, ...ended]),
      ...this.#whoCommands("add", id, begun),
      ...links.flatMap(linkCommands),
    ]);
    for (const [, other] of others) other.sources = new Map([...other.sources].filter(([key]) => !sources.has(key)));
    const indexes = new Set([...links.map(({ index }) => index), ...(known.isComplete ? [] : (before?.links ?? []))]);
    this.#installed.set(id, { open, lengths, sources, links: indexes, startedAt: known.startedAt });
    await this.#removeLinks([...(before?.links ?? [])].filter((index) => !indexes.has(index)));
  }

  async #remove(containerId: string): Promise<void> {
    const id = shortId(containerId);
    const found = this.#installed.get(id);
    if (found === undefined) return;
    this.#installed.delete(id);
    if (found.isLost === true) return;
    await this.#nft.transact([
      ...this.#whoCommands("remove", id, [...found.sources]),
      ...removalCommands(id, found.lengths),
      ...this.#heldChanges(),
    ]);
    await this.#removeLinks(found.links);
  }

  /**
   * Resolves when the kernel lets the container reach these addresses: only then may an answer with them be sent. Undefined if
   * it does so already, for at least half of `lifeMs`.
   */
  open(containerId: string, openings: readonly Opening[], lifeMs: number): Promise<void> | undefined {
    const found = this.#installed.get(shortId(containerId));
    if (found === undefined) {
      const message = `Cannot open addresses for container ${containerId.slice(0, 12)}: the kernel does not police it`;
      return Promise.reject(new Fault("NOT_POLICED", message));
    }
    const possible = openings.filter(({ address }) => found.lengths.includes(lengthOf(address)));
    return this.#rounds.open(found.open, possible.map(openingKey), lifeMs);
  }

  /** How many addresses are open for a container. */
  openCount(containerId: string): number {
    return this.#installed.get(shortId(containerId))?.open.countAt(performance.now()) ?? 0;
  }

  /** Where packets of a container were refused, in the last day; the last one first. */
  refused(containerId: string): RefusedAddress[] {
    const id = shortId(containerId);
    const lengths = this.#installed.get(id)?.lengths ?? [];
    return lengths
      .flatMap((length) => this.#reader.elements(seenSet(id, length)))
      .toSorted((one, other) => other.leftMs - one.leftMs)
      .map(({ key }) => readPortKey(key));
  }

  /** Removes the tables: everything is open then. */
  async delete(): Promise<void> {
    await this.#nft.transact(Object.values(TABLES).map((table) => table.delete()));
    this.#installed.clear();
  }

  /** Leaves the tables as they are. */
  [Symbol.dispose](): void {
    this.#watch?.close();
    this.#nft.close();
    this.#readingNft.close();
  }

  #watchOthers(): NftWatch {
    const { within, onLost } = this.#parts;
    const look = new CoalescedCall(async () => await this.#inTurn(async () => await this.#restore()), LOOK_EVERY_MS);
    return within(
      () => new NftWatch(new Set([this.#nft.port]), () => void look.get().catch((error: unknown) => onLost?.(error))),
    );
  }

  /** If others have removed the tables, they are made again, with the networks closed. What they held, `onLost` has applied again. */
  async #restore(): Promise<void> {
    if (this.#watch === undefined) return;
    // They may have been removed again before their identity was read.
    const found = this.#reader.identity();
    if (found !== undefined && found === this.#identity) return;
    await this.#nft.transact([
      ...baseCommands(0, this.#parts.resolvers),
      ...networkCommands(this.#networks),
      ...heldCommands("add", [...this.#held].map(bytesOf)),
    ]);
    this.#identity = this.#reader.identity();
    for (const each of this.#installed.values()) each.isLost = true;
    this.#parts.onLost?.();
  }

  /** Each change begins with what the one before it left. */
  async #inTurn(change: () => Promise<void>): Promise<void> {
    const result = this.#lastChange.then(change);
    this.#lastChange = result.catch(() => undefined);
    await result;
  }

  #whoCommands(change: "add" | "remove", id: string, sources: readonly (readonly [string, boolean])[]): NftCommand[] {
    const judge = { code: nft.NFT_GOTO, chain: judgingChain(id) };
    const accept = { code: nft.NF_ACCEPT };
    return (["forward", "input"] as const).flatMap((hook) =>
      ADDRESS_LENGTHS.flatMap((length) => {
        const elements: SetElement[] = sources
          .map(([text, reachesHost]) => ({
            key: Buffer.from(text, "latin1"),
            verdict: hook === "input" && reachesHost ? accept : judge,
          }))
          .filter(({ key }) => key.length === length);
        return TABLES.inet.elements(change, whoMap(hook, length), elements);
      }),
    );
  }

  /** Removes the rules of all links but these: an earlier process may have left them. */
  async removeLinksBut(kept: ReadonlySet<number>): Promise<void> {
    await this.#inTurn(async () => {
      const found = this.#reader.chains("netdev").flatMap((chain) => linkIndexOf(chain) ?? []);
      await this.#removeLinks(found.filter((index) => !kept.has(index)));
    });
  }

  /** A chain goes with its link, so it may be gone. */
  async #removeLinks(indexes: Iterable<number>): Promise<void> {
    for (const index of indexes) {
      try {
        const chain = linkChain(index);
        await this.#nft.transact([...TABLES.netdev.replaceRules(chain, []), TABLES.netdev.deleteChain(chain)]);
      } catch (error) {
        if (codeOf(error) !== "ENOENT") throw error;
      }
    }
  }

  /** Learns what an earlier process left. Whose links they were, it says when it polices them again. */
  #adopt(): void {
    const sets = new Set(this.#reader.sets());
    const nowMs = performance.now();
    const sourcesOf = this.#adoptedSources();
    const held = ADDRESS_LENGTHS.map(heldSet).filter((set) => sets.has(set));
    this.#toHold =
      this.#held =
      this.#heldBefore =
        new Set(held.flatMap((set) => this.#reader.elements(set)).map(({ key }) => keyOf(key)));
    for (const chain of this.#reader.chains("inet")) {
      const [, id] = /^judge-(.+)$/.exec(chain) ?? [];
      if (id === undefined) continue;
      const open = new OpenAddresses(id);
      const lengths = ADDRESS_LENGTHS.filter((length) => sets.has(addressSet(id, length)));
      for (const set of lengths.flatMap((length) => [addressSet(id, length), portSet(id, length)]))
        for (const { key, leftMs } of this.#reader.elements(set)) open.adopt(key.toString("latin1"), nowMs + leftMs);
      this.#installed.set(id, { open, lengths, sources: sourcesOf.get(chain) ?? new Map(), links: new Set() });
    }
  }

  /** The source addresses of each chain. */
  #adoptedSources(): Map<string, Map<string, boolean>> {
    const found = new Map<string, Map<string, boolean>>();
    for (const length of ADDRESS_LENGTHS) {
      const judged = new Set(
        this.#reader
          .elements(whoMap("input", length))
          .filter(({ chain }) => chain !== undefined)
          .map(({ key }) => key.toString("latin1")),
      );
      for (const { key, chain = "" } of this.#reader.elements(whoMap("forward", length))) {
        const text = key.toString("latin1");
        const sources = found.get(chain) ?? new Map<string, boolean>();
        found.set(chain, sources.set(text, !judged.has(text)));
      }
    }
    return found;
  }
}

/** What the tables have of it from before stays, until all of it is known again. */
function withAddressesOf(before: Installed | undefined, container: PolicedContainer): PolicedContainer {
  const keys = new Set([...container.addresses.map(keyOf), ...(before?.sources.keys() ?? [])]);
  return { ...container, addresses: [...keys].map(bytesOf) };
}

function chainsLeft({ memory, within }: Pick<PolicyTableParts, "memory" | "within">): string[] {
  const socket = within(() => new NftSocket(memory));
  try {
    return new TableReader(socket).chains("inet");
  } catch (error) {
    if (NO_TABLES.has(codeOf(error) ?? "")) return [];
    throw error;
  } finally {
    socket.close();
  }
}

async function isCreatedOwned(socket: NftSocket, commands: (flags: number) => NftCommand[]): Promise<boolean> {
  try {
    await socket.transact(commands(nft.NFT_TABLE_F_OWNER | nft.NFT_TABLE_F_PERSIST));
    return true;
  } catch (error) {
    const code = codeOf(error);
    if (code === "EPERM") {
      throw new Fault("POLICY_OWNED", "Another process enforces policies on this machine", {
        remedy: "End it, or start this one with --replace.",
        cause: error,
      });
    }
    if (!CANNOT_OWN.has(code ?? "")) throw error;
  }
  await socket.transact(commands(0));
  return false;
}

/** Whether there was one to delete. */
async function isDeleted(socket: NftSocket, table: NftTable): Promise<boolean> {
  try {
    await socket.transact([table.delete()]);
    return true;
  } catch (error) {
    if (NO_TABLES.has(codeOf(error) ?? "")) return false;
    throw error;
  }
}

function keyOf(address: Uint8Array): string {
  return Buffer.from(address).toString("latin1");
}

function bytesOf(key: string): Buffer {
  return Buffer.from(key, "latin1");
}

function openingKey({ address, protocol, port }: Opening): string {
  if (port === undefined) return keyOf(address);
  return portKey(address, PROTOCOLS[protocol ?? "tcp"], port).toString("latin1");
}

interface FoundElement {
  readonly key: Buffer;
  /** How long it still stays; 0 for ever. */
  readonly leftMs: number;
  /** Where an element of a map leads. */
  readonly chain: string | undefined;
}

/** What the policy's tables hold: what an earlier process left, and what was refused. */
class TableReader {
  readonly #nft: NftSocket;

  constructor(socket: NftSocket) {
    this.#nft = socket;
  }

  /** What identifies both tables: whoever removes one and makes it again has another. Undefined if one is missing. */
  identity(): string | undefined {
    const handles = Object.values(TABLES).map((table) => this.#handle(table.family));
    return handles.includes(undefined) ? undefined : handles.join(" ");
  }

  #handle(family: number): string | undefined {
    let handle: string | undefined;
    const select = (w: NetlinkWriter): void => w.text(nft.NFTA_TABLE_NAME, TABLE_NAME);
    this.#nft.find({ command: nft.NFT_MSG_GETTABLE, family, isOne: true, select }, (_family, bytes) => {
      handle = attributesIn(bytes).get(nft.NFTA_TABLE_HANDLE)?.toString("hex");
    });
    return handle;
  }

  /** The names of its sets. */
  sets(): string[] {
    return this.#names("inet", nft.NFT_MSG_GETSET, nft.NFTA_SET_TABLE, nft.NFTA_SET_NAME);
  }

  chains(family: TableFamily): string[] {
    return this.#names(family, nft.NFT_MSG_GETCHAIN, nft.NFTA_CHAIN_TABLE, nft.NFTA_CHAIN_NAME);
  }

  elements(set: string): FoundElement[] {
    const found: FoundElement[] = [];
    const select = (w: NetlinkWriter): void => {
      w.text(nft.NFTA_SET_ELEM_LIST_TABLE, TABLE_NAME);
      w.text(nft.NFTA_SET_ELEM_LIST_SET, set);
    };
    this.#nft.find({ command: nft.NFT_MSG_GETSETELEM, family: TABLES.inet.family, select }, (_family, bytes) => {
      const list = attributesIn(bytes).get(nft.NFTA_SET_ELEM_LIST_ELEMENTS);
      for (const [, element] of list === undefined ? [] : attributeList(list)) {
        const read = elementOf(element);
        if (read !== undefined) found.push(read);
      }
    });
    return found;
  }

  /** The kernel may list those of all tables. */
  #names(family: TableFamily, command: number, tableAttribute: number, nameAttribute: number): string[] {
    const names: string[] = [];
    const select = (w: NetlinkWriter): void => w.text(tableAttribute, TABLE_NAME);
    this.#nft.find({ command, family: TABLES[family].family, select }, (_family, bytes) => {
      const attributes = attributesIn(bytes);
      if (textOf(attributes.get(tableAttribute)) === TABLE_NAME) names.push(textOf(attributes.get(nameAttribute)));
    });
    return names;
  }
}

function elementOf(bytes: Buffer): FoundElement | undefined {
  const attributes = attributesIn(bytes);
  const keyData = attributes.get(nft.NFTA_SET_ELEM_KEY);
  const key = keyData && attributesIn(keyData).get(nft.NFTA_DATA_VALUE);
  if (key === undefined) return undefined;
  const data = attributes.get(nft.NFTA_SET_ELEM_DATA);
  const verdict = data && attributesIn(data).get(nft.NFTA_DATA_VERDICT);
  const chain = verdict && attributesIn(verdict).get(nft.NFTA_VERDICT_CHAIN);
  const left = attributes.get(nft.NFTA_SET_ELEM_EXPIRATION);
  return {
    // The memory that it was read into is used again.
    key: Buffer.from(key),
    leftMs: left === undefined ? 0 : Number(left.readBigUInt64BE(0)),
    chain: chain && textOf(chain),
  };
}
