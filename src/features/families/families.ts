/**
 * Families: containers are given addresses of the families that the settings choose for them. A filter belongs to a client, so a
 * container that is given all costs each query a look at an empty field.
 */
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { Client } from "../../query/client/client.ts";
import type { EngineCore, RunCore, Running } from "../contract.ts";
import { FamilyFilter } from "./family-filter.ts";
import { type FamiliesEntry, entryText, familiesOf } from "./feature.ts";
import { EVERYTHING, ONLY, type Reach, leftOut, reachKey, reachOf } from "./reach.ts";

export function open({ settings, observe }: RunCore): Running {
  const filters = new Filters();
  observe({
    open: (containerId, client) => {
      filters.open(containerId, client);
      return undefined;
    },
    close: () => undefined,
  });
  filters.configure(familiesOf(settings));
  return {
    engine: (core) => filters.follow(core),
    configure: (next) => filters.configure(familiesOf(next)),
    put: ({ id }) => filters.changed(id),
  };
}

/** What is in force for a client. */
interface Chosen {
  readonly key: string;
  readonly filter: FamilyFilter | undefined;
}

type FilteredClient = Pick<Client, "filter" | "repeater" | "onClose">;

const NOTHING: Chosen = { key: "", filter: undefined };

export class Filters {
  #entries: readonly FamiliesEntry[] = [];
  #engine: Pick<EngineCore, "directory"> | undefined;
  /** Open clients by container, with what they have. */
  readonly #clients = new Map<string, Map<FilteredClient, string>>();

  follow(engine: Pick<EngineCore, "directory">): void {
    this.#engine = engine;
  }

  open(containerId: string, client: FilteredClient): void {
    const clients = this.#clients.get(containerId) ?? new Map<FilteredClient, string>();
    const { key, filter } = this.#chosenFor(containerId);
    this.#clients.set(containerId, clients.set(client, key));
    client.filter = filter;
    client.onClose(() => {
      clients.delete(client);
      if (clients.size === 0 && this.#clients.get(containerId) === clients) this.#clients.delete(containerId);
    });
  }

  configure(entries: readonly FamiliesEntry[]): void {
    this.#entries = entries;
    for (const id of this.#clients.keys()) this.changed(id);
  }

  /** The settings, or the container's networks, are others. What the kernel repeats ends in the same step. */
  changed(containerId: string): void {
    const clients = this.#clients.get(containerId);
    if (clients === undefined) return;
    const { key, filter } = this.#chosenFor(containerId);
    for (const [client, before] of clients) {
      if (before === key) continue;
      clients.set(client, key);
      client.filter = filter;
      client.repeater?.forget();
    }
  }

  /** Inside of a KIND node there are no facts, and so no networks and no routes that are known. */
  #chosenFor(containerId: string): Chosen {
    const fact = this.#engine?.directory().containers.get(containerId);
    // Whoever is no container is not meant.
    if (this.#engine !== undefined && fact === undefined) return NOTHING;
    const entry = entryFor(this.#entries, fact);
    if (entry === undefined || entry.families === "all") return NOTHING;
    const reach = this.#reachBy(entry, fact);
    const families = leftOut(reach);
    if (families.length === 0) return NOTHING;
    const why = entry.families === "reachable" ? " to which the container has no route" : "";
    const text = `${families.join(" and ")} addresses${why} are left out (setting families: ${entryText(entry)})`;
    return { key: `${text} ${reachKey(reach)}`, filter: new FamilyFilter(reach, text) };
  }

  #reachBy({ families }: FamiliesEntry, fact: ContainerFact | undefined): Reach {
    if (families === "ipv4" || families === "ipv6") return ONLY[families];
    const directory = this.#engine?.directory();
    if (directory === undefined || fact === undefined) return EVERYTHING;
    return reachOf(fact, (id) => directory.network(id));
  }
}

/** Of several for networks of the container the first one, before the one for everyone. */
function entryFor(entries: readonly FamiliesEntry[], fact: ContainerFact | undefined): FamiliesEntry | undefined {
  const own = new Set(fact?.endpoints.map(({ networkName }) => networkName));
  const ofNetwork = entries.find(({ network }) => network !== undefined && own.has(network));
  return ofNetwork ?? entries.find(({ network }) => network === undefined);
}
