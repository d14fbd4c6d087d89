/**
 * HostSockets: what is open in the namespace of the engine's host to answer at its addresses: sockets on ports that the kernel chose, so that
 * another server of the host may have port 53, and a table of rules that leads queries there. The rules end with the process, and
 * the keeper holds copies of all of it, so that the next process can go on with them.
 */
import type { HeldNamespace, HeldPair, Hold, Keep, ServedNamespace } from "../../base/model/held-namespace.ts";
import type { RuleBackendChoice } from "../../base/model/rule-backend.ts";
import { closeInPool } from "../../kernel/in-pool.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { type EngineHost, openHostNetwork } from "../namespace/engine-host.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import { type NamespaceSockets, bindPair, closeSockets } from "../namespace/sockets.ts";
import type { OwnedTables } from "../rules/owned-tables.ts";
import type { SharedEndpoint } from "./endpoints.ts";

export interface HostSocketsParts {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly ruleBackend: RuleBackendChoice;
  readonly host: () => EngineHost;
  /** Gives the keeper copies of the descriptors. */
  readonly keep: Keep | undefined;
  /** What the previous process left. */
  readonly inherit: (id: string) => HeldNamespace | undefined;
}

interface HostTable {
  readonly removal: OwnedTables["removal"];
  close(): void;
}

interface What<Table> {
  /** Under which the keeper holds it. */
  readonly id: string;
  /** Opens the table's socket, or takes over one together with its rules. */
  readonly openTable: (netns: NetNamespace, inherited: number | undefined) => Table;
}

export class HostSockets<Table extends HostTable> {
  readonly netns: NetNamespace;
  readonly table: Table;
  readonly #id: string;
  readonly #keep: Keep | undefined;
  /** Sockets of the previous process, until they are taken over. */
  readonly #inherited: HeldPair[];
  #hold: Hold | undefined;

  constructor({ runner, memory, host, keep, inherit }: HostSocketsParts, { id, openTable }: What<Table>) {
    const fd = openHostNetwork(host());
    // Not before: what is inherited once must be used or closed.
    const held = inherit(id);
    if (held?.gate !== undefined) void closeInPool(held.gate);
    this.#id = id;
    this.#keep = keep;
    this.#inherited = [...(held?.pairs ?? [])];
    let isTableOpen = false;
    try {
      this.netns = runner.namespaceOf(fd, memory);
      this.table = openTable(this.netns, held?.netlink);
      isTableOpen = true;
    } finally {
      if (!isTableOpen) {
        if (held !== undefined) void closeInPool(held.netlink);
        closeSockets(this.#inherited);
        closeQuietly(fd);
      }
    }
  }

  /** Takes over the sockets of the previous process that have one of these addresses, and binds the others: all or none. */
  bind(addresses: readonly string[]): NamespaceSockets[] {
    const bound: NamespaceSockets[] = [];
    try {
      for (const address of addresses) {
        const at = this.#inherited.findIndex(({ listening }) => listening.address === address);
        const [known] = at === -1 ? [] : this.#inherited.splice(at, 1);
        bound.push(known ?? this.netns.within(() => bindPair(address)));
      }
      return bound;
    } catch (error) {
      closeSockets(bound);
      throw error;
    }
  }

  /** Nobody takes over what is left of the previous process. */
  closeInherited(): void {
    closeSockets(this.#inherited.splice(0));
  }

  /** Gives the keeper the rules and these sockets, in place of what it holds. */
  hold(pairs: readonly NamespaceSockets[]): void {
    const held: ServedNamespace = {
      ...this.table.removal,
      id: this.#id,
      pairs,
      zone: 0,
      spared: [],
      programs: [],
      isLocked: false,
      alone: "hand-back",
      openGate: () => this.netns.openGate(),
    };
    if (this.#hold === undefined) this.#hold = this.#keep?.(held);
    else this.#hold.update(held);
  }

  close(): void {
    this.letGo();
    this.endHold();
  }

  /**
   * The rules go with the last descriptor of the socket that owns them: the next process, or the keeper, may have another. The sockets that
   * were bound are in the endpoints that own them.
   */
  letGo(): void {
    this.table.close();
    this.closeInherited();
    closeQuietly(this.netns.fd);
  }

  /** The keeper, too, lets go. */
  endHold(): void {
    this.#hold?.release();
    this.#hold = undefined;
  }
}

/** The sockets with the descriptors that another process may go on with. */
export function pausedPairs(
  pairs: readonly NamespaceSockets[],
  endpoint: Pick<SharedEndpoint, "pause">,
): readonly NamespaceSockets[] {
  const descriptors = endpoint.pause();
  return pairs.map((pair, index) => ({ ...pair, ...descriptors[index] }));
}
