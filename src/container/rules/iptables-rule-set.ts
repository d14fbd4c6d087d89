/**
 * IptablesRuleSet: our rules as iptables-legacy chains. Each table changes atomically, one table after the other, in an
 * order in which a query that arrives between two changes is answered, too. Such a query is redirected outside of our conntrack
 * zone, and its entry would lead later queries of its socket to us for as long as they come, whatever the rules say by then.
 */
import { Fault } from "../../base/lib/fault.ts";
import { isSameAddress } from "../../base/model/address.ts";
import { type TrackedConversation, deleteTracked, trackedConversationsTo } from "../../kernel/conntrack.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { removeTable } from "./permanent-rules.ts";
import { DNS_PORT } from "./rewritten-port.ts";
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
  /** All that led new queries to us since nothing was redirected. */
  readonly #redirects = new Map<string, UdpRedirect>();

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
    const redirects = plans.flatMap(udpRedirects);
    for (const each of redirects) this.#redirects.set(`${each.destination} ${each.address} ${each.port}`, each);
    for (const family of this.#families)
      await this.#apply(
        family,
        plans.find((plan) => plan.family === family),
      );
    this.#families = planned;
    // Without zones, the replies that are still to be sent need the same entries.
    if (redirects.length === 0 && this.#hasZones) this.#releaseClients();
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
    this.#releaseClients();
  }

  close(): void {
    // There is nothing to close.
  }

  async #apply(family: IpFamily, plan: TablePlan | undefined): Promise<void> {
    const options = { hasZones: this.#hasZones, interfaceName: (index: number) => this.#interfaceName(index) };
    await applyChains(family, this.#netns.fd, plan, options);
  }

  /** New queries are not redirected any more: nor are those of sockets that asked between two changes. */
  #releaseClients(): void {
    const { memory, within } = this.#netns;
    const redirects = [...this.#redirects.values()];
    this.#redirects.clear();
    try {
      within(() => {
        for (const destination of new Set(redirects.map((each) => each.destination))) {
          const leadsToUs = (to: TrackedConversation): boolean =>
            redirects.some(
              (each) =>
                each.destination === destination && each.port === to.port && isSameAddress(each.address, to.address),
            );
          deleteTracked(memory, trackedConversationsTo(memory, destination, DNS_PORT).filter(leadsToUs));
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

/** Where clients ask, and where they are answered. */
interface UdpRedirect {
  readonly destination: string;
  readonly address: string;
  readonly port: number;
}

function udpRedirects({ chains }: TablePlan): UdpRedirect[] {
  return chains.flatMap(({ rules }) =>
    rules.flatMap(({ match: { protocol, destination }, action }) =>
      action.kind === "dnat" && protocol === "udp" && destination !== undefined
        ? [{ destination, address: action.address, port: action.port }]
        : [],
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
