/**
 * PortConflicts: programs that already use port 53 of a node's own address and would lose its queries: a resolver in the
 * node, or a pod that the port is redirected to. A node of a large cluster has tens of thousands of rules: they are read in
 * slices, and the first answer has to wait for them.
 */
import { guard } from "../../base/lib/guard.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { allChainsRedirecting, firstChainsRedirecting } from "../rules/port-redirects.ts";
import { listenersAt } from "../namespace/listeners.ts";

const DNS_PORT = 53;
/** The first answer within this time does not read rules again: it is asked for because they have all been read. */
const FRESH_MS = 1_000;
const REMEDY = "choose another kind.ip, or set kind.force";

export class PortConflicts {
  readonly #memory: NetlinkMemory;
  readonly #onChange: () => void;
  /** What the last reading of all rules has found. */
  #found: readonly string[] | undefined;
  /** The time at which that was reported as a change, until it has been an answer. */
  #changedMs = -Infinity;
  #reading: Promise<void> | undefined;

  /** `onChange`: all rules have been read, and another answer may follow. */
  constructor(memory: NetlinkMemory, onChange: () => void) {
    this.#memory = memory;
    this.#onChange = onChange;
  }

  /** A sentence, "none", or "unknown" before all rules have been read. Call inside the namespace. */
  find(addresses: readonly string[]): string {
    if (addresses.length === 0) return "none";
    const listening = addresses.flatMap((address) =>
      listenersAt(address, DNS_PORT).map((protocol) => `${address} over ${protocol}`),
    );
    if (listening.length > 0) return `a process listens on port 53 of ${listening.join(" and ")}: ${REMEDY}`;
    const chains = this.#chains();
    if (chains === undefined) return "unknown";
    if (chains.length === 0) return "none";
    return `port 53 of ${addresses.join(" and ")} is redirected by chain ${chains.join(", ")}: ${REMEDY}`;
  }

  /** The chains that redirect the port, as far as they are known; undefined if that is not far enough. */
  #chains(): readonly string[] | undefined {
    const found = this.#found;
    const isFresh = performance.now() - this.#changedMs < FRESH_MS;
    this.#changedMs = -Infinity;
    if (isFresh) return found;
    const { chains, isComplete } = firstChainsRedirecting(this.#memory, DNS_PORT);
    if (isComplete) return chains;
    this.#reading ??= this.#readAll();
    return chains.length === 0 ? found : [...new Set([...chains, ...(found ?? [])])];
  }

  /** Resolves when all rules have been read, if that has begun. */
  async read(): Promise<void> {
    await this.#reading;
  }

  async #readAll(): Promise<void> {
    try {
      const before = this.#found;
      const found = await allChainsRedirecting(this.#memory, DNS_PORT);
      this.#found = found;
      this.#reading = undefined;
      if (before?.join() === found.join()) return;
      this.#changedMs = performance.now();
      this.#onChange();
    } catch (error) {
      this.#reading = undefined;
      guard.report(error, "netlink");
    }
  }
}
