/**
 * StoppedNames: the names of containers that are not running: not started yet, stopped, or between two starts. Without
 * them such a name would go to upstream servers, which may log it, or even answer it. It is the last source: whoever else
 * has the name has it now.
 */
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import { WILDCARD } from "../../base/model/extra-name.ts";
import { addressBytes } from "../../base/model/address.ts";
import { LIMITS } from "../../base/limits.ts";
import { featureValues } from "../../config/setting.ts";
import type { LabelPolicy } from "../../base/model/name-choices.ts";
import { LabelTable } from "../../base/model/label-table.ts";
import { SuffixTable } from "../../container/names/source/suffix-table.ts";
import { DENIED, MISS, type NameSearch, type QuestionName, type VisibleNames } from "../../base/model/visible-names.ts";
import { type ContainerFact, type StoppedFact, isUserDefined } from "../../container/facts/fact.ts";
import { type Choice, choiceOf } from "../../container/facts/label-choices.ts";
import { type Labels, effectiveLabels, ignoredLabelWarning } from "../../container/facts/labels.ts";
import { nameKey } from "../../container/names/docker/docker-name.ts";
import { NameEntry } from "../../container/names/source/name-entry.ts";
import type { NameContext } from "../../container/names/name-sources.ts";
import type { NameSource, NamedContainer } from "../../container/names/source/name-source.ts";
import type { Running } from "../contract.ts";
import { STOPPED, STOPPED_POLICIES, type StoppedPolicy } from "./feature.ts";

const STOPPED_LABEL = "io.dns11.stopped";
/** Names of one container. */
export const NAMES_MAX = 256;
/** So long after a container has ended its names are forwarded, as in Docker. */
export const KEPT_MS = 86_400_000;

/** Docker has no names of containers that do not run. */
export function open(): Running {
  return {
    makeNames: (settings, context) => {
      const { isStrict, labels } = settings;
      const stopped = isStrict ? undefined : featureValues(STOPPED.settings, settings).stopped;
      return { place: "stopped", source: new StoppedNames({ stopped, labels }, context) };
    },
    labelWarnings: (fact, labels, policy) => [
      labelStopped(labels, "forward").warning,
      ignoredLabelWarning(STOPPED_LABEL, fact, policy),
    ],
  };
}

function labelStopped(labels: Labels, setting: StoppedPolicy): Choice<StoppedPolicy> {
  return choiceOf(labels, STOPPED_LABEL, STOPPED_POLICIES, setting);
}

/** Whether a running container has an address on a network now. */
type IsTaken = (network: string, address: Uint8Array) => boolean;

/** One container on one network. */
interface StoppedEndpoint {
  readonly network: string;
  readonly container: string;
  readonly untilMs: number;
  readonly policy: StoppedPolicy;
  /** Its last addresses, where they are known. */
  readonly addresses: readonly Uint8Array[];
}

/** The key has the container and the network. */
type Endpoints = Map<string, StoppedEndpoint>;

/** Names, and by network what wildcards stand for. */
interface StoppedTables {
  readonly exact: LabelTable<Endpoints>;
  readonly wildcards: Map<string, SuffixTable<Endpoints>>;
}

/** Where a name is listed. */
interface Listed {
  readonly table: Pick<LabelTable<Endpoints>, "get" | "set" | "delete">;
  readonly key: Uint8Array;
}

interface KnownStopped {
  readonly fact: StoppedFact;
  readonly listed: readonly Listed[];
  /** By network, as they were last seen. */
  readonly last: ReadonlyMap<string, readonly Uint8Array[]>;
}

/** The order is from what says least to what says most: of several containers with one name, the last counts. */
const RANKS: readonly StoppedPolicy[] = ["forward", "nxdomain", "empty", "last-address"];

class VisibleStopped implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.stopped;
  readonly #tables: StoppedTables;
  readonly #networks: ReadonlySet<string>;
  readonly #isTaken: IsTaken;

  constructor(tables: StoppedTables, networks: ReadonlySet<string>, isTaken: IsTaken) {
    this.#tables = tables;
    this.#networks = networks;
    this.#isTaken = isTaken;
  }

  find(name: QuestionName, search: NameSearch): number {
    const { folded, foldedLength, labelCount, hashOf } = name;
    const exact = this.#tables.exact.find(folded, foldedLength, hashOf[labelCount] as number);
    if (exact === undefined && this.#tables.wildcards.size === 0) return MISS;
    const found = exact === undefined ? [] : this.#own(exact.values());
    const own = found.length > 0 ? found : this.#own(this.#below(name));
    if (own.length === 0) return MISS;
    const rank = Math.max(-1, ...own.map(({ policy }) => RANKS.indexOf(policy)));
    const policy = RANKS[rank] ?? "forward";
    if (policy === "forward") return MISS;
    const names = [...new Set(own.map(({ container }) => `"${container}"`))].join(", ");
    search.trace?.record("names", `a name of ${names}, not running (setting stopped: ${policy})`);
    if (policy === "nxdomain") return DENIED;
    return search.found(this.#lastAddresses(own), true, true);
  }

  *#below(name: QuestionName): Iterable<StoppedEndpoint> {
    const { wildcards } = this.#tables;
    for (const network of this.#networks) yield* wildcards.get(network)?.find(name)?.values() ?? [];
  }

  #own(endpoints: Iterable<StoppedEndpoint>): StoppedEndpoint[] {
    const nowMs = Date.now();
    return [...endpoints].filter(({ network, untilMs }) => untilMs > nowMs && this.#networks.has(network));
  }

  /** An address that another container has by now is not the name's any more. */
  #lastAddresses(endpoints: readonly StoppedEndpoint[]): NameEntry {
    const entry = new NameEntry();
    for (const { network, container, policy, addresses } of endpoints) {
      if (policy !== "last-address") continue;
      for (const address of addresses.filter((each) => !this.#isTaken(network, each))) {
        const [v4, v6] = address.length === 4 ? [address, undefined] : [undefined, address];
        entry.put(`${container} ${network} ${address.length}`, { v4, v6 });
      }
    }
    return entry;
  }

  /** No container has the address now. */
  pointer(): undefined {
    return undefined;
  }
}

interface StoppedSettings {
  /** What such names mean, where a label does not say so; undefined: always as in Docker. */
  readonly stopped: StoppedPolicy | undefined;
  readonly labels: LabelPolicy;
}

type StoppedContext = Pick<NameContext, "networks" | "namesOf">;

export class StoppedNames implements NameSource {
  readonly #context: StoppedContext;
  readonly #containers = new Map<string, KnownStopped>();
  readonly #tables: StoppedTables = { exact: new LabelTable(), wildcards: new Map() };
  readonly #setting: StoppedPolicy | undefined;
  readonly #labels: LabelPolicy;

  constructor(settings: StoppedSettings, context: StoppedContext) {
    this.#context = context;
    this.#setting = settings.stopped;
    this.#labels = settings.labels;
  }

  get stoppedIds(): Iterable<string> | undefined {
    return this.#setting === undefined ? undefined : this.#containers.keys();
  }

  *catchUp(current: StoppedNames): Generator<void> {
    if (this.#setting === undefined) return;
    for (const known of current.#containers.values()) {
      if (this.#containers.get(known.fact.id)?.fact === known.fact) continue;
      this.removeStopped(known.fact.id);
      yield void this.#containers.set(known.fact.id, { ...known, listed: this.#list(known) });
    }
    for (const id of this.#containers.keys()) if (!current.#containers.has(id)) yield this.removeStopped(id);
  }

  putStopped(fact: StoppedFact, before: ContainerFact | undefined): void {
    const last = before === undefined ? this.#containers.get(fact.id)?.last : lastAddresses(before);
    this.removeStopped(fact.id);
    if (this.#setting === undefined) return;
    // One that ended long ago is known, so that nobody asks the engine for it again, but has no names.
    const isOver = fact.sinceMs + KEPT_MS <= Date.now();
    const known = {
      fact: isOver ? { ...fact, networks: [] } : fact,
      listed: [],
      last: last ?? new Map<string, readonly Uint8Array[]>(),
    };
    this.#containers.set(fact.id, { ...known, listed: this.#list(known) });
    if (this.#containers.size > LIMITS.stoppedContainers) this.#removeOldest();
  }

  /** It runs again. One that is starting may have no names of its own yet. */
  join({ fact: { id, isStarting } }: NamedContainer): void {
    if (isStarting !== true) this.removeStopped(id);
  }

  removeStopped(id: string): void {
    const known = this.#containers.get(id);
    if (known === undefined) return;
    this.#containers.delete(id);
    for (const { table, key } of known.listed) {
      const endpoints = table.get(key);
      for (const { name } of known.fact.networks) endpoints?.delete(`${id} ${name}`);
      if (endpoints?.size === 0) table.delete(key);
    }
    const { wildcards } = this.#tables;
    for (const { name } of known.fact.networks) if (wildcards.get(name)?.size === 0) wildcards.delete(name);
  }

  namesFor({ endpoints }: ContainerFact): VisibleNames | undefined {
    if (this.#setting === undefined) return undefined;
    const networks = endpoints.map(({ networkName }) => networkName).filter(isUserDefined);
    const { networks: docker } = this.#context;
    return new VisibleStopped(this.#tables, new Set(networks), docker.hasAddress.bind(docker));
  }

  /** Puts the names of a container into the tables: those of other sources, NAME, and NAME.NETWORK. */
  #list({ fact, last }: Omit<KnownStopped, "listed">): Listed[] {
    const labels = effectiveLabels(fact, this.#labels);
    const { policy } = labelStopped(labels, this.#setting ?? "forward");
    const others = this.#context.namesOf(fact, labels);
    const listed: Listed[] = [];
    const list = (name: string, endpoint: StoppedEndpoint, table: Listed["table"] = this.#tables.exact): void => {
      const key = nameKey(name);
      const endpoints = table.get(key) ?? new Map<string, StoppedEndpoint>();
      endpoints.set(`${fact.id} ${endpoint.network}`, endpoint);
      table.set(key, endpoints);
      listed.push({ table, key });
    };
    for (const { name: network, names } of fact.networks) {
      const endpoint: StoppedEndpoint = {
        network,
        container: fact.name,
        untilMs: fact.sinceMs + KEPT_MS,
        policy,
        addresses: last.get(network) ?? [],
      };
      for (const { name } of others.filter((each) => each.network === network)) {
        if (name.startsWith(WILDCARD)) list(name.slice(WILDCARD.length), endpoint, this.#wildcardsOf(network));
        else list(name, endpoint);
      }
      for (const name of names.slice(0, NAMES_MAX)) {
        list(name, endpoint);
        list(`${name}.${network}`, endpoint);
      }
    }
    return listed;
  }

  #wildcardsOf(network: string): SuffixTable<Endpoints> {
    const { wildcards } = this.#tables;
    const known = wildcards.get(network) ?? new SuffixTable();
    wildcards.set(network, known);
    return known;
  }

  #removeOldest(): void {
    let oldest: StoppedFact | undefined;
    for (const { fact } of this.#containers.values())
      if (oldest === undefined || fact.sinceMs < oldest.sinceMs) oldest = fact;
    if (oldest !== undefined) this.removeStopped(oldest.id);
  }
}

function lastAddresses({ endpoints }: ContainerFact): Map<string, readonly Uint8Array[]> {
  return new Map(
    endpoints.map(({ networkName, ipv4, ipv6 }) => [
      networkName,
      [ipv4, ipv6].flatMap((text) => (text === undefined ? [] : (addressBytes(text) ?? []))),
    ]),
  );
}
