/**
 * IptablesRuleSet: our rules as iptables-legacy chains. Each table changes atomically, one table after the other, in an
 * order in which a query that arrives between two changes is answered, too. Such a query is redirected outside of our conntrack
 * zone, and its entry would lead later queries of its socket to us for as long as they come, whatever the rules say by then.
 */
import { Fault } from "../../base/lib/fault.ts";
import { deleteTracked, trackedConversationsTo } from "../../kernel/conntrack.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { removeTable } from "./permanent-rules.ts";
import { applyChains } from "./iptables-chains.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import type { RuleSet } from "./rule-set.ts";
import type { IpFamily, TablePlan } from "./plan.ts";
import type { InstalledRules } from "./installed-rules.ts";

/** iptables-restore splits its input at blanks, so any other name could be read as several words. */
const PLAIN_NAME = /^[\w.@:-]+$/;

export class IptablesRuleSet implements RuleSet {
  readonly netlinkPort = undefined;
  readonly removal = undefined;
  readonly #hasZones: boolean;
  readonly #netns: NetNamespace;
  #families: readonly IpFamily[] = [];
  #interfaceNames: ReadonlyMap<number, string> = new Map();
  /** Of UDP, while new queries were redirected last. */
  #redirects: readonly UdpRedirect[] = [];

  constructor(hasZones: boolean, netns: NetNamespace) {
    this.#hasZones = hasZones;
    this.#netns = netns;
  }

  async install(plans: readonly TablePlan[], existing: readonly InstalledRules[]): Promise<void> {
    this.#families = existing.filter(({ kind }) => kind === "chains").map(({ family }) => family);
    await this.replaceTables(plans);
    for (const { kind, family } of existing) if (kind === "table") await removeTable(this.#netns, family);
  }

  /** iptables-legacy identifies chains by name only, so every change is the same operation. */
  async replaceRules(plans: readonly TablePlan[]): Promise<void> {
    const planned = plans.map(({ family }) => family);
    // Tables change one after the other: if one fails, remove() must also revert those that were changed before it.
    this.#families = [...new Set([...planned, ...this.#families])];
    for (const family of this.#families)
      await this.#apply(
        family,
        plans.find((plan) => plan.family === family),
      );
    this.#families = planned;
    const redirects = plans.flatMap(udpRedirects);
    if (redirects.length > 0) this.#redirects = redirects;
    else await this.#releaseClients();
  }

  async replaceTables(plans: readonly TablePlan[]): Promise<void> {
    const usesInterfaces = plans.some(({ chains }) =>
      chains.some(({ rules }) => rules.some(({ match }) => match.interface !== undefined)),
    );
    this.#interfaceNames = usesInterfaces ? interfaceNames(this.#netns) : new Map();
    await this.replaceRules(plans);
  }

  async remove(): Promise<void> {
    for (const family of this.#families) {
      try {
        await this.#apply(family, undefined);
      } catch {
        // The next attach or `dns11 cleanup` finds and removes what is left.
      }
    }
    this.#families = [];
    await this.#releaseClients();
  }

  close(): void {
    // There is nothing to close.
  }

  async #apply(family: IpFamily, plan: TablePlan | undefined): Promise<void> {
    const options = { hasZones: this.#hasZones, interfaceName: (index: number) => this.#interfaceName(index) };
    await applyChains(family, this.#netns.fd, plan, options);
  }

  /** New queries are not redirected any more: nor are those of sockets that asked between two changes. */
  async #releaseClients(): Promise<void> {
    const { memory } = this.#netns;
    try {
      await this.#netns.read(() => {
        for (const { destination, destinationPort, port } of this.#redirects) {
          const tracked = trackedConversationsTo(memory, destination, destinationPort);
          deleteTracked(
            memory,
            tracked.filter((conversation) => conversation.port === port),
          );
        }
      });
    } catch {
      // Without conntrack nothing is tracked; and an entry ends by itself, half a minute after the last query of its socket.
    }
  }

  #interfaceName(index: number): string {
    const name = this.#interfaceNames.get(index);
    if (name === undefined || !PLAIN_NAME.test(name)) {
      throw new Fault("IPTABLES", `Cannot pass interface ${index} to iptables: unsupported name "${name ?? ""}"`, {
        remedy: "Rename the interface in the container's namespace: use letters, digits, dots, dashes and underscores.",
      });
    }
    return name;
  }
}

/** Where clients ask, and the ports that answer them. */
interface UdpRedirect {
  readonly destination: string;
  readonly destinationPort: number;
  readonly port: number;
}

function udpRedirects({ chains }: TablePlan): UdpRedirect[] {
  return chains.flatMap(({ rules }) =>
    rules.flatMap(({ match: { protocol, destination, destinationPort }, action }) =>
      action.kind !== "dnat" || protocol !== "udp" || destination === undefined || destinationPort === undefined
        ? []
        : [{ destination, destinationPort, port: action.port }],
    ),
  );
}

function interfaceNames({ within, memory }: NetNamespace): Map<number, string> {
  const route = within(() => new RouteSocket(memory));
  try {
    return new Map(route.links().map(({ index, name }) => [index, name]));
  } finally {
    route.close();
  }
}
