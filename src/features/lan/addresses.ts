/**
 * Lan: dns11 at addresses of the host, for other machines and for whoever else the setting `listen` lets ask. Each address serves when
 * the host has it and nobody else has its port 53; otherwise it is tried again, and says why not.
 *
 *   opening --(sockets, rules)--> serving --(address gone)--> waiting --(it is back)--> serving
 *                                    |
 *                                    +--(port taken, rules refused)--> failed --(after a while)--> serving
 *
 * All addresses have one table of rules, which is made again as a whole when any of them changes.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

import type { ListenAddressReport, ListenReport, ListenReports } from "../../api/listener.ts";
import { drained } from "../../base/lib/retry.ts";
import { Fault, codeOf, isInternalError, reasonWithRemedy } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { LIMITS } from "../../base/limits.ts";
import { isSameAddress, addressBytes, addressText, blockText } from "../../base/model/address.ts";
import type { ReportEvent } from "../../base/log/log.ts";
import type { View } from "../../base/model/view.ts";
import type {
  OpenSubnetEndpoint,
  SubnetEndpoint,
  SubnetEndpointParts,
} from "../../container/host-address/endpoints.ts";
import { HostSockets, type HostSocketsParts, pausedPairs } from "../../container/host-address/host-sockets.ts";
import type { EngineHost } from "../../container/namespace/engine-host.ts";
import { listenersAt } from "../../container/namespace/listeners.ts";
import { type NamespaceSockets, closeSockets } from "../../container/namespace/sockets.ts";
import { DNS_PORT } from "../../container/rules/rewritten-port.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { socketsAt } from "../../kernel/sock-diag.ts";
import { type ListenEntry, listenViewText } from "./feature.ts";
import { type LanAddress, type LanDrop, LanTable } from "./lan-table.ts";

const STATES = { udp: "unconnected", tcp: "listening" } as const;
const UNIT_FOLDERS = ["sys/fs/cgroup/system.slice", "sys/fs/cgroup/unified/system.slice"];
const UNITS_MAX = 1_000;
const NO_GROUP = 0n;

/** Under which the keeper holds it. */
const HELD_ID = "lan";
const NO_DROPS: Readonly<Record<LanDrop, number>> = { link: 0, source: 0, rate: 0, port: 0 };

export interface LanParts extends HostSocketsParts {
  readonly openEndpoint: OpenSubnetEndpoint;
  readonly dial: SubnetEndpointParts["dial"];
  readonly viewOf: (entry: ListenEntry) => View;
  /** What is missing for an entry's view; undefined if nothing is. */
  readonly problemOf: (entry: ListenEntry) => string | undefined;
  /** Why an entry is quarantined: dns11 crashed because of its queries. Undefined if it is not. */
  readonly quarantineOf: (entry: ListenEntry) => string | undefined;
  /** A container that publishes port 53 at an address of the host. */
  readonly publisherAt: (address: string) => string | undefined;
  readonly startAfter: Promise<void>;
  readonly onEvent: ReportEvent;
}

/** An entry that answers, at one address or two. */
interface Serving {
  readonly entry: ListenEntry;
  /** Of each address. */
  readonly links: readonly (readonly number[])[];
  pairs: readonly NamespaceSockets[];
  readonly endpoint: SubnetEndpoint;
}

/** An address that can serve, and the links that have it. */
interface Found {
  readonly address: string;
  readonly links: readonly number[];
}

/** The id and the name of an entry in reports, which no container can have. */
export function listenId(name: string): string {
  return `listen:${name}`;
}

export class Lan {
  readonly #parts: LanParts;
  #entries: readonly ListenEntry[];
  #opened: HostSockets<LanTable> | undefined;
  /** By the names of entries. */
  #serving = new Map<string, Serving>();
  /** Why addresses do not serve. */
  #states = new Map<string, ListenAddressReport>();
  /** What entries have counted that were closed. */
  readonly #gone = new Map<string, Pick<SubnetEndpoint, "queries" | "refused" | "lost">>();
  #drops: Readonly<Record<LanDrop, number>> = NO_DROPS;
  #isPaused = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  /** Its changes are made one after the other. */
  #turn: Promise<void> = Promise.resolve();
  #isSettled: boolean;

  constructor(entries: readonly ListenEntry[], parts: LanParts) {
    this.#parts = parts;
    this.#entries = entries;
    this.#isSettled = entries.length === 0;
    void parts.startAfter.then(
      () => this.#settle(),
      () => undefined,
    );
  }

  /** Whether each address serves, or it is known why not. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  get entries(): readonly ListenEntry[] {
    return this.#entries;
  }

  get report(): ListenReports {
    const { table } = this.#opened ?? {};
    if (table !== undefined) this.#drops = table.drops;
    return { entries: this.entryReports, dropped: this.#drops };
  }

  /** What is known without asking the kernel. */
  get entryReports(): readonly ListenReport[] {
    return this.#entries.map((entry) => this.#reportOf(entry));
  }

  configure(entries: readonly ListenEntry[]): void {
    this.#entries = entries;
    this.#settle();
    this.updateViews();
  }

  /** What entries see has changed. */
  updateViews(): void {
    for (const { entry, endpoint } of this.#serving.values()) endpoint.setView(this.#parts.viewOf(entry));
  }

  /** Reads no more queries and touches no rule: the next process is about to take over. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    clearTimeout(this.#timer);
    await this.#turn;
    for (const serving of this.#serving.values()) serving.pairs = pausedPairs(serving.pairs, serving.endpoint);
    this.#hold();
  }

  /** Continues after a takeover that failed. */
  resume(): void {
    this.#isPaused = false;
    for (const { endpoint } of this.#serving.values()) endpoint.resume();
    this.#settle();
  }

  /** Lets go after a takeover. */
  async abandon(): Promise<void> {
    await this.#end();
    this.#release();
  }

  async stop(): Promise<void> {
    await this.#end();
    this.#closeAll();
  }

  /** Answers what it has received, also what was forwarded. */
  async #end(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#turn;
    await drained(() => [...this.#serving.values()].some(({ endpoint }) => endpoint.inFlight > 0), LIMITS);
  }

  #settle(): void {
    clearTimeout(this.#timer);
    this.#turn = this.#turn.then(async () => await this.#settleOnce());
  }

  async #settleOnce(): Promise<void> {
    if (this.#isClosed || this.#isPaused) return;
    try {
      await this.#settleAll();
    } catch (error) {
      this.#fail(error);
    }
    this.#isSettled = true;
    clearTimeout(this.#timer);
    if (this.#entries.length === 0 || this.#isClosed) return;
    const again = (): boolean => guard.run("timer", 0, () => this.#settle());
    this.#timer = setTimeout(again, LIMITS.listenerRetryMs).unref();
  }

  async #settleAll(): Promise<void> {
    if (this.#entries.length === 0) return this.#closeAll();
    const isFirst = this.#opened === undefined;
    const sockets = (this.#opened ??= this.#open());
    const { netns, table } = sockets;
    const found = new Map(this.#entries.map((entry) => [entry.name, this.#findOrKeep(entry, netns)]));
    const kept = new Map([...this.#serving].filter(([name, each]) => isAsBefore(each, this.#entries, found.get(name))));
    const bound = new Map<string, readonly NamespaceSockets[]>();
    for (const { name, addresses } of this.#entries) {
      const at = found.get(name) ?? [];
      if (kept.has(name) || at.length === 0) continue;
      try {
        bound.set(name, sockets.bind(at.map(({ address }) => address)));
      } catch (error) {
        this.#noteFailed(name, addresses, error);
      }
    }
    const added = this.#entries.filter(({ name }) => bound.has(name));
    if (!isFirst && added.length === 0 && kept.size === this.#serving.size) return;
    try {
      const addresses = [
        ...[...kept.values()].flatMap((each) => lanAddresses(each.entry, each.pairs, each.links)),
        ...added.flatMap((entry) => lanAddresses(entry, bound.get(entry.name) ?? [], linksOf(found.get(entry.name)))),
      ];
      await table.install(addresses);
    } catch (error) {
      for (const pairs of bound.values()) closeSockets(pairs);
      throw codeOf(error) === "EPERM" ? anotherInstance(error) : error;
    }
    const before = this.#serving;
    this.#serving = kept;
    try {
      for (const [name, serving] of before) if (!kept.has(name)) this.#closeOne(name, serving);
      for (const entry of added)
        this.#serving.set(entry.name, this.#serve(entry, bound, linksOf(found.get(entry.name))));
    } catch (error) {
      // The others are in the endpoints that own them.
      for (const pairs of bound.values()) closeSockets(pairs);
      throw error;
    }
    sockets.closeInherited();
    this.#hold();
  }

  #open(): HostSockets<LanTable> {
    const { backend } = this.#parts.ruleBackend;
    if (backend !== "nft-owner") throw unfitBackend(backend);
    return new HostSockets(this.#parts, {
      id: HELD_ID,
      openTable: (netns, inherited) => new LanTable(netns, inherited),
    });
  }

  /** Where they cannot be looked up, for want of descriptors for example, the entry goes on as it is. */
  #findOrKeep(entry: ListenEntry, netns: NetNamespace): readonly Found[] {
    try {
      return this.#find(entry, netns);
    } catch (error) {
      const serving = this.#serving.get(entry.name);
      const found = (serving === undefined ? [] : addressesOf(serving)).filter(({ address }) =>
        entry.addresses.includes(address),
      );
      const others = entry.addresses.filter((address) => !found.some((each) => each.address === address));
      this.#noteFailed(entry.name, others, error);
      return found;
    }
  }

  /** The addresses of an entry that can serve now; of the others it is noted why not. */
  #find(entry: ListenEntry, netns: NetNamespace): readonly Found[] {
    const { addresses, name } = entry;
    const found: Found[] = [];
    const reason = this.#parts.quarantineOf(entry);
    if (reason !== undefined) {
      for (const address of addresses) this.#note(name, { address, state: "failed", code: "QUARANTINED", reason });
      return found;
    }
    for (const address of addresses) {
      const links = netns.within(() => linksWith(address, this.#parts.memory));
      const taken = links.length === 0 ? undefined : this.#takenBy(address, netns);
      if (links.length === 0) {
        this.#note(name, { address, state: "waiting", reason: `this host does not have the address ${address}` });
      } else if (taken === undefined) found.push({ address, links });
      else this.#note(name, { address, state: "failed", code: taken.code, reason: reasonWithRemedy(taken) });
    }
    return found;
  }

  #takenBy(address: string, netns: NetNamespace): Fault | undefined {
    const publisher = this.#parts.publisherAt(address);
    const holder =
      publisher === undefined
        ? netns.within(() => portHolder(address, this.#parts.host()))
        : `the container "${publisher}", which publishes it`;
    return holder === undefined ? undefined : portTaken(address, holder);
  }

  /** Takes its sockets out of `bound`. */
  #serve(entry: ListenEntry, bound: Map<string, readonly NamespaceSockets[]>, links: Serving["links"]): Serving {
    const { openEndpoint, viewOf, dial, onEvent } = this.#parts;
    const parts = { id: listenId(entry.name), allow: entry.allow, view: viewOf(entry), dial };
    const pairs = bound.get(entry.name) ?? [];
    bound.delete(entry.name);
    const endpoint = openEndpoint(pairs, parts);
    const addresses = pairs.map(({ listening }) => listening.address);
    for (const address of addresses) this.#states.delete(`${entry.name} ${address}`);
    onEvent({ listen: entry.name, addresses }, "answers at addresses of this host");
    return { entry, links, pairs, endpoint };
  }

  #note(name: string, state: ListenAddressReport): void {
    const key = `${name} ${state.address}`;
    const before = this.#states.get(key);
    this.#states.set(key, state);
    if (before?.reason === state.reason) return;
    const about = { listen: name, address: state.address, reason: state.reason };
    this.#parts.onEvent(about, "does not answer at an address of this host", "warn");
  }

  #reportOf(entry: ListenEntry): ListenReport {
    const { name, addresses, allow, view, forwards } = entry;
    const serving = this.#serving.get(name);
    const problem = this.#parts.problemOf(entry);
    const isServed = (address: string): boolean =>
      serving?.pairs.some(({ listening }) => isSameAddress(listening.address, address)) === true;
    return {
      name,
      addresses: addresses.map((address) =>
        isServed(address)
          ? { address, state: "serving" }
          : (this.#states.get(`${name} ${address}`) ?? { address, state: "opening" }),
      ),
      allow: allow.map((block) => blockText(block)),
      view: listenViewText(view),
      forward: forwards,
      ...(problem !== undefined && { problem }),
      ...sum(this.#gone.get(name), serving?.endpoint),
    };
  }

  /** Nothing serves where the rules are missing. */
  #fail(error: unknown): void {
    if (isInternalError(error)) guard.report(error, "attach");
    this.#closeAll();
    for (const { name, addresses } of this.#entries) this.#noteFailed(name, addresses, error);
  }

  #noteFailed(name: string, addresses: readonly string[], error: unknown): void {
    const state = { state: "failed", code: codeOf(error) ?? "LISTEN_FAILED", reason: reasonWithRemedy(error) } as const;
    for (const address of addresses) this.#note(name, { address, ...state });
  }

  #closeAll(): void {
    this.#release()?.endHold();
  }

  /** Returns what was open, for the keeper has it still. */
  #release(): HostSockets<LanTable> | undefined {
    const opened = this.#opened;
    this.#opened = undefined;
    if (opened !== undefined) this.#drops = opened.table.drops;
    opened?.letGo();
    for (const [name, serving] of this.#serving) this.#closeOne(name, serving);
    this.#serving = new Map();
    return opened;
  }

  #closeOne(name: string, { endpoint }: Serving): void {
    this.#gone.set(name, sum(this.#gone.get(name), endpoint));
    endpoint.close();
  }

  #hold(): void {
    this.#opened?.hold([...this.#serving.values()].flatMap((each) => each.pairs));
  }
}

type Counted = Pick<SubnetEndpoint, "queries" | "refused" | "lost">;

function sum(one: Counted | undefined, other: Counted | undefined): Counted {
  const all = [one, other].filter((each) => each !== undefined);
  const of = (read: (each: Counted) => number): number => all.reduce((total, each) => total + read(each), 0);
  return {
    queries: of(({ queries }) => queries),
    refused: { source: of(({ refused }) => refused.source), connections: of(({ refused }) => refused.connections) },
    lost: of(({ lost }) => lost),
  };
}

/** The addresses at which it answers. */
function addressesOf({ pairs, links }: Serving): readonly Found[] {
  return pairs.map(({ listening }, index) => ({ address: listening.address, links: links[index] ?? [] }));
}

/** Whether it may go on as it is. */
function isAsBefore(
  { entry, links, pairs }: Serving,
  entries: readonly ListenEntry[],
  found: readonly Found[] | undefined,
): boolean {
  const isSame = found?.length === pairs.length && found.every(isAt);
  function isAt(each: Found, index: number): boolean {
    return pairs[index]?.listening.address === each.address && links[index]?.join() === each.links.join();
  }
  return isSame && entries.some((each) => isSameEntry(each, entry));
}

/** A reload reads all entries again. */
function isSameEntry(one: ListenEntry, other: ListenEntry): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function linksOf(found: readonly Found[] | undefined): Serving["links"] {
  return (found ?? []).map(({ links }) => links);
}

/** What its rules let in. */
function lanAddresses(
  { allow }: ListenEntry,
  pairs: readonly NamespaceSockets[],
  links: Serving["links"],
): LanAddress[] {
  return pairs.map(({ listening }, index) => ({ listening, allow, links: links[index] ?? [] }));
}

/**
 * The links of the host that have an address. It counts once the kernel delivers packets to it: one that is still checked
 * for duplicates does not.
 *
 * Their indexes. Call inside the namespace.
 */
function linksWith(address: string, memory: NetlinkMemory): number[] {
  const routes = new RouteSocket(memory);
  try {
    if (!routes.isLocal(address)) return [];
    return routes.addresses().flatMap((each) => (isSameAddress(each.address, address) ? [each.index] : []));
  } finally {
    routes.close();
  }
}

/** Why dns11 does not answer at addresses of the host. */
function portTaken(address: string, holder: string): Fault {
  return new Fault("LISTEN_PORT_TAKEN", `Port 53 of ${address} is taken: by ${holder}`, {
    remedy: "Have it listen at other addresses, or remove this one from the setting listen.",
  });
}

function unfitBackend(backend: string): Fault {
  return new Fault(
    "LISTEN_NEEDS_NFT",
    `The setting listen needs rules that end with their process, and the rule backend is ${backend}`,
    { remedy: "Use Linux 5.12 or later with nf_tables, or remove the setting listen." },
  );
}

/** It owns the tables. */
function anotherInstance(cause: unknown): Fault {
  return new Fault("LISTEN_ELSEWHERE", "Another dns11 answers at addresses of this host", {
    cause,
    remedy: "One instance of a host can have the setting listen: remove it from the other one.",
  });
}

/**
 * The program that already answers at port 53 of an address of the host, as far as the kernel tells: where it listens, and
 * the systemd unit whose control group it is in.
 *
 * Undefined if nobody has it. Call inside the host's namespace.
 */
function portHolder(address: string, { pid }: Pick<EngineHost, "pid">): string | undefined {
  const protocols = listenersAt(address, DNS_PORT);
  const [first] = protocols;
  if (first === undefined) return undefined;
  const bytes = Buffer.from(addressBytes(address) ?? []);
  const at = ([4, 6] as const)
    .flatMap((family) => socketsAt({ protocol: first, family, state: STATES[first], end: "local", port: DNS_PORT }))
    .filter(({ local }) => local.address.equals(bytes) || local.address.every((byte) => byte === 0))
    .toSorted((a, b) => Number(b.local.address.equals(bytes)) - Number(a.local.address.equals(bytes)))[0];
  const place = at === undefined ? "" : `, at ${addressText(at.local.address)}`;
  const unit = unitOf(pid, at?.controlGroup ?? NO_GROUP);
  return `${unit ?? "another program"}${place} (${protocols.join(" and ")})`;
}

/** The number of its folder is the id of a control group. */
function unitOf(pid: number, id: bigint): string | undefined {
  if (id === NO_GROUP) return undefined;
  for (const folder of UNIT_FOLDERS) {
    try {
      const path = `/proc/${pid}/root/${folder}`;
      for (const name of readdirSync(path).slice(0, UNITS_MAX))
        if (statSync(join(path, name), { bigint: true, throwIfNoEntry: false })?.ino === id) return name;
    } catch {
      // It is not mounted there.
    }
  }
  return undefined;
}
