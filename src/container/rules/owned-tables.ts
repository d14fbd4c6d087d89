/**
 * OwnedTables: tables of the host's namespace, one in each family, that belong to a netlink socket and go with it. So another process
 * that is to keep or remove them needs the socket alone.
 */
import type { HeldNamespace, HeldTable } from "../../base/model/held-namespace.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { type NftCommand, NftSocket } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import type { NftTable } from "../../kernel/nft-table.ts";
import { randomInt } from "node:crypto";

export class OwnedTables {
  readonly #netns: NetNamespace;
  readonly #tables: readonly (readonly [HeldTable["family"], NftTable])[];
  readonly #nft: NftSocket;
  #isInstalled: boolean;

  /** Opens a socket, or takes over one together with its tables. */
  constructor(
    netns: NetNamespace,
    tables: Readonly<Partial<Record<HeldTable["family"], NftTable>>>,
    inherited: number | undefined,
  ) {
    this.#netns = netns;
    this.#tables = Object.entries(tables) as [HeldTable["family"], NftTable][];
    this.#isInstalled = inherited !== undefined;
    this.#nft = netns.within(() => new NftSocket(netns.memory, inherited));
  }

  /** What another process needs to remove the tables. */
  get removal(): Pick<HeldNamespace, "netlink" | "tables" | "isOwned"> {
    const tables = this.#tables.map(([family, { name }]): HeldTable => ({ family, name }));
    return { netlink: this.#nft.fd, isOwned: true, tables };
  }

  /** In place of what is installed, in one transaction: `contents` are what the new tables have. */
  async install(contents: readonly NftCommand[]): Promise<void> {
    const removals = this.#isInstalled ? this.#removals() : [];
    const tables = this.#tables.map(([, table]) => table.create(nft.NFT_TABLE_F_OWNER));
    await this.change([...removals, ...tables, ...contents]);
    this.#isInstalled = true;
  }

  async change(commands: readonly NftCommand[]): Promise<void> {
    await this.#netns.transact(this.#nft, commands);
  }

  async remove(): Promise<void> {
    if (!this.#isInstalled) return;
    await this.change(this.#removals());
    this.#isInstalled = false;
  }

  close(): void {
    this.#nft.close();
  }

  #removals(): NftCommand[] {
    return this.#tables.map(([, table]) => table.delete());
  }
}

/** Zone 0 is the default zone. */
const FIRST = 1;
const LAST = 0xffff;

/**
 * A new conntrack zone each time sockets are created in a namespace. Entries of an earlier zone point to closed
 * ports, and a client that keeps its socket would be redirected there for as long as it sends queries.
 * Starts at a random zone, because an earlier process may have used some, and repeats none before all are used.
 */
export function zoneAllocator(): () => number {
  let next = randomInt(FIRST, LAST + 1);
  return () => {
    const zone = next;
    next = zone === LAST ? FIRST : zone + 1;
    return zone;
  };
}
