/**
 * ContainerLinks: the links of each container on the Docker daemon's host. Packets that enter there come from this
 * container, whatever addresses they carry.
 *
 *   the host's links (a list, then the kernel's reports) --- which namespace the other end is in
 *   Docker's facts about a container ----------------------- which namespace is the container's, its networks, addresses
 *
 * Only the host's side and Docker are asked. A container that has NET_ADMIN can rename its interfaces, change their
 * addresses, and make links of its own, and none of that is read here. A link is taken as a container's while a descriptor
 * of the container's namespace is open: so the number of the namespace cannot be another one's by then.
 */
import { codeOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { inSlices, ownSlice } from "../../base/lib/slices.ts";
import { LIMITS } from "../../base/limits.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { NetlinkWatch } from "../../kernel/netlink-watch.ts";
import { type HostLink, HostLinkSocket, type LinkChange, watchLinks } from "../../kernel/host-links.ts";
import { type ContainerFact, type NetworkFact, type EndpointFact, sharedWith } from "../facts/fact.ts";
import type { EngineHost } from "../namespace/engine-host.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import type { NamespaceClaim, ProvenNamespace } from "../namespace/proof.ts";
import type { ContainerLink, LinksOfContainer, NoLink } from "./container-link.ts";

const FLIP_UNIVERSAL = 0x02;

interface ContainerLinksParts {
  readonly runner: Pick<NamespaceRunner, "within">;
  readonly memory: NetlinkMemory;
  /** The Docker daemon's host, whose links are followed. */
  readonly host: () => Pick<EngineHost, "network" | "networkId">;
  readonly prove: (claim: NamespaceClaim) => ProvenNamespace;
  readonly networkOf: (id: string) => NetworkFact | undefined;
}

type OnLinks = (containerId: string) => void;

interface Known {
  fact: ContainerFact;
  now: LinksOfContainer;
  /** The number of its namespace on the host when it was last looked up. */
  namespace: number | undefined;
}

/** What is open in the host's namespace. */
interface Open {
  readonly networkId: string;
  readonly socket: HostLinkSocket;
  readonly watch: NetlinkWatch;
}

/** Docker's word for none. */
const NO_NETWORK = "none";
const READ_LATER_MS = 1_000;
const NOTHING: LinksOfContainer = { links: [], missing: [] };

export class ContainerLinks {
  readonly #parts: ContainerLinksParts;
  readonly #listeners = new Set<OnLinks>();
  readonly #strangerListeners = new Set<() => void>();
  readonly #containers = new Map<string, Known>();
  readonly #byIndex = new Map<number, ContainerLink>();
  /** All links of the host, as the kernel reported them. */
  readonly #host = new Map<number, HostLink>();
  /** Containers to look up, in the order in which that became due. */
  readonly #due = new Set<string>();
  #open: Open | undefined;
  /** Settles when nothing is due. */
  #working: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #readTimer: NodeJS.Timeout | undefined;

  constructor(parts: ContainerLinksParts) {
    this.#parts = parts;
  }

  /** Reads the host's links and follows them from now on, for `containers` and those that come. Idempotent. */
  async start(containers: Iterable<ContainerFact>): Promise<void> {
    if (this.#open !== undefined) return;
    this.#openHost();
    for (const fact of containers) this.put(fact);
    this.#timer = setInterval(() => this.#readSoon(), LIMITS.linksReadEveryMs);
    this.#timer.unref();
    await this.settled();
  }

  get isStarted(): boolean {
    return this.#open !== undefined;
  }

  /** Resolves when everything that has been put is looked up. */
  async settled(): Promise<void> {
    await this.#working;
  }

  /** The engine may be another process, on another host's network. */
  hostChanged(): void {
    if (this.#open === undefined || this.#open.networkId === this.#parts.host().networkId) return;
    this.#closeHost();
    this.#openHost();
    for (const id of this.#containers.keys()) this.#lookUpSoon(id);
  }

  /** The container runs, or has changed: its networks, for example. Does nothing until `start`. */
  put(fact: ContainerFact): void {
    if (this.#open === undefined) return;
    const known = this.#containers.get(fact.id) ?? { fact, now: NOTHING, namespace: undefined };
    known.fact = fact;
    this.#containers.set(fact.id, known);
    this.#lookUpSoon(fact.id);
  }

  remove(containerId: string): void {
    const known = this.#containers.get(containerId);
    if (known === undefined) return;
    this.#replace(containerId, known, NOTHING);
    this.#containers.delete(containerId);
  }

  of(containerId: string): LinksOfContainer {
    return this.#containers.get(containerId)?.now ?? NOTHING;
  }

  /** The container's link with this index on the host. */
  byIndex(index: number): ContainerLink | undefined {
    return this.#byIndex.get(index);
  }

  /** All links of all containers. */
  all(): Iterable<ContainerLink> {
    return this.#byIndex.values();
  }

  /** The ports of a bridge that lead to a namespace of no container that is known. */
  strangersOn(bridge: string): HostLink[] {
    const owned = new Set([...this.#containers.values()].map(({ namespace }) => namespace));
    const links = [...this.#host.values()];
    const at = links.find(({ name }) => name === bridge)?.index;
    return links.filter(
      ({ index, master, peer }) =>
        at !== undefined &&
        master === at &&
        peer !== undefined &&
        !owned.has(peer.namespace) &&
        !this.#byIndex.has(index),
    );
  }

  /** `listener` is called when a port of a bridge that is no container's has come, changed or gone. Returns how to end that. */
  onStranger(listener: () => void): () => void {
    this.#strangerListeners.add(listener);
    return () => void this.#strangerListeners.delete(listener);
  }

  /** `listener` is called when the links of a container have changed. Returns how to end that. */
  onChange(listener: OnLinks): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#readTimer);
    this.#closeHost();
    this.#containers.clear();
    this.#byIndex.clear();
    this.#listeners.clear();
    this.#strangerListeners.clear();
  }

  #openHost(): void {
    const { runner, memory, host } = this.#parts;
    const { network, networkId } = host();
    this.#open = runner.within(network, () => ({
      networkId,
      // Before the first list, so that no change is missed.
      watch: watchLinks(
        (change) => this.#onLink(change),
        () => this.#readSoon(),
      ),
      socket: new HostLinkSocket(memory),
    }));
    this.#host.clear();
    // Nothing is looked up before.
    this.#working = this.#work(this.#readAgain());
  }

  #closeHost(): void {
    const open = this.#open;
    this.#open = undefined;
    open?.watch.close();
    open?.socket.close();
  }

  /** A defect costs this piece of work. What fails because the sockets are closed is none. */
  async #completed(work: Promise<void>): Promise<void> {
    const open = this.#open;
    try {
      await work;
    } catch (error) {
      if (open !== undefined && this.#open === open) guard.report(error, "netlink");
    }
  }

  #onLink(change: LinkChange): void {
    const index = change.kind === "gone" ? change.index : change.link.index;
    const before = this.#host.get(index);
    if (change.kind === "gone") this.#host.delete(index);
    else {
      if (before !== undefined && isSame(before, change.link)) return;
      this.#host.set(index, change.link);
    }
    const bound = this.#byIndex.get(index);
    const now = this.#host.get(index);
    // A bridge to which nobody has given an address has that of one of its ports.
    if (before !== undefined && now !== undefined && !isSameMac(before, now)) this.#lookUpOn(now.name);
    if (bound !== undefined) this.#lookUpSoon(bound.containerId);
    else if (before?.master !== undefined || now?.master !== undefined)
      for (const listener of this.#strangerListeners) guard.run("netlink", 0, listener);
    const at = change.kind === "link" ? change.link.peer?.namespace : undefined;
    if (at === undefined) return;
    for (const [id, { namespace }] of this.#containers) {
      // A namespace gets its number with the first link that leads there.
      if (namespace === undefined || namespace === at) this.#lookUpSoon(id);
    }
  }

  /** For a link that should be there: its report may be on its way, or was lost. */
  #readLater(): void {
    this.#readTimer ??= setTimeout(() => {
      this.#readTimer = undefined;
      this.#readSoon();
    }, READ_LATER_MS);
    this.#readTimer.unref();
  }

  #readSoon(): void {
    void this.#completed(this.#readAgain());
  }

  /** Takes from a list what the kernel's reports have not said. */
  async #readAgain(): Promise<void> {
    const open = this.#open;
    if (open === undefined) return;
    const { runner, host, memory } = this.#parts;
    const reported = new Set<number>();
    const before = new Map(this.#host);
    const listed = new Map<number, HostLink>();
    // A socket of its own: others use the common one between two parts.
    const socket = runner.within(host().network, () => new HostLinkSocket(memory));
    try {
      await inSlices(socket.linksInParts((link) => listed.set(link.index, link)));
    } finally {
      socket.close();
    }
    if (this.#open !== open) return;
    for (const index of new Set([...before.keys(), ...this.#host.keys()])) {
      // A report that came meanwhile is as new as the list, or newer.
      if (before.get(index) !== this.#host.get(index)) reported.add(index);
    }
    for (const link of listed.values()) if (!reported.has(link.index)) this.#onLink({ kind: "link", link });
    for (const index of before.keys()) {
      if (!listed.has(index) && !reported.has(index)) this.#onLink({ kind: "gone", index });
    }
  }

  /** The containers on a bridge. */
  #lookUpOn(bridge: string): void {
    for (const [id, { now }] of this.#containers)
      if (now.links.some((link) => link.bridge === bridge)) this.#lookUpSoon(id);
  }

  #lookUpSoon(containerId: string): void {
    this.#due.add(containerId);
    if (this.#working !== undefined) return;
    this.#working = this.#work(ownSlice());
  }

  /** One container after the other: each may wait for a lock in the pool. */
  async #work(after: Promise<void>): Promise<void> {
    await this.#completed(after);
    for (const id of this.#due) {
      this.#due.delete(id);
      await this.#completed(this.#lookUp(id));
    }
    this.#working = undefined;
  }

  async #lookUp(containerId: string): Promise<void> {
    const known = this.#containers.get(containerId);
    const open = this.#open;
    if (known === undefined || open === undefined) return;
    const none = noLinkAtAll(known.fact);
    const found = none === undefined ? await this.#find(known, open) : withoutLinks(none);
    // It may be gone by now; what has changed meanwhile is due again.
    if (this.#containers.get(containerId) !== known || this.#open !== open) return;
    this.#replace(containerId, known, found);
    if (found.missing.some(({ reason }) => reason === "not-found")) this.#readLater();
  }

  async #find(known: Known, open: Open): Promise<LinksOfContainer> {
    const { fact } = known;
    const { networkOf, prove } = this.#parts;
    let fd;
    try {
      ({ fd } = prove({ containerId: fact.id, sandboxKey: fact.sandboxKey, pid: fact.pid }));
    } catch (error) {
      return withoutLinks({ reason: "unproven", text: `its network namespace cannot be opened (${codeOf(error)})` });
    }
    try {
      known.namespace = open.socket.numberOf(fd);
      const links = await this.#linksOf(known, open);
      return { links, missing: missingAmong(links, fact, networkOf) };
    } finally {
      closeQuietly(fd);
    }
  }

  /** Call while the namespace is held open. */
  async #linksOf({ fact, namespace }: Known, { socket }: Open): Promise<readonly ContainerLink[]> {
    const links: ContainerLink[] = [];
    if (namespace === undefined) return links;
    for (const { index } of this.#candidates(fact, namespace)) {
      const link = await socket.link(index);
      if (link?.peer?.namespace !== namespace) continue;
      const inside = await socket.linkIn(namespace, link.peer.index);
      links.push(this.#containerLink(fact, { ...link, peer: link.peer }, inside?.name ?? ""));
    }
    return links;
  }

  /** The links that lead to the namespace. Other containers wait while they are looked up, so there is a limit: Docker's come first. */
  #candidates(fact: ContainerFact, namespace: number): readonly HostLink[] {
    const leading = [...this.#host.values()].filter(({ peer }) => peer?.namespace === namespace);
    if (leading.length <= LIMITS.linksOfContainer) return leading;
    const isExpected = ({ master }: HostLink): boolean =>
      endpointOn(fact, this.#bridgeOf(master)?.name, this.#parts.networkOf) !== undefined;
    const [expected, others] = [leading.filter(isExpected), leading.filter((link) => !isExpected(link))];
    return [...expected, ...others].slice(0, LIMITS.linksOfContainer);
  }

  #bridgeOf(master: number | undefined): HostLink | undefined {
    return master === undefined ? undefined : this.#host.get(master);
  }

  #containerLink(
    fact: ContainerFact,
    { index, name, master, peer }: HostLink & { readonly peer: NonNullable<HostLink["peer"]> },
    inside: string,
  ): ContainerLink {
    const bridge = this.#bridgeOf(master);
    const endpoint = endpointOn(fact, bridge?.name, this.#parts.networkOf);
    return {
      containerId: fact.id,
      networkId: endpoint?.networkId,
      bridge: bridge?.name,
      bridgeMac: bridge?.mac,
      index,
      name,
      insideIndex: peer.index,
      inside,
      mac: endpoint?.mac,
      addresses: endpoint === undefined ? [] : addressesOf(endpoint),
    };
  }

  #replace(containerId: string, known: Known, next: LinksOfContainer): void {
    const before = known.now;
    if (JSON.stringify(before) === JSON.stringify(next)) return;
    for (const { index } of before.links)
      if (this.#byIndex.get(index)?.containerId === containerId) this.#byIndex.delete(index);
    known.now = next;
    for (const link of next.links) this.#byIndex.set(link.index, link);
    for (const listener of this.#listeners) guard.run("netlink", 0, () => listener(containerId));
  }
}

function withoutLinks(reason: NoLink): LinksOfContainer {
  return { links: [], missing: [reason] };
}

function isSameMac({ mac: a }: HostLink, { mac: b }: HostLink): boolean {
  return a === undefined || b === undefined ? a === b : Buffer.compare(a, b) === 0;
}

function isSame(a: HostLink, b: HostLink): boolean {
  return (
    a.name === b.name &&
    isSameMac(a, b) &&
    a.master === b.master &&
    a.peer?.index === b.peer?.index &&
    a.peer?.namespace === b.peer?.namespace
  );
}

/** Why the container has no link on the host, by what Docker says; undefined if links are to be looked for. */
export function noLinkAtAll({ networkMode, endpoints }: ContainerFact): NoLink | undefined {
  if (networkMode === "host") return { reason: "host-network", text: "it uses the host's network" };
  const owner = sharedWith(networkMode);
  if (owner !== undefined) {
    return { reason: "shared-namespace", text: `it shares the network of container ${owner.slice(0, 12)}`, owner };
  }
  // The mode stays when it is connected to networks later.
  if (endpoints.every(({ networkName }) => networkName === NO_NETWORK))
    return { reason: "no-network", text: "it is on no network" };
  return undefined;
}

/** The endpoint whose network has this bridge. */
export function endpointOn(
  { endpoints }: ContainerFact,
  bridge: string | undefined,
  networkOf: (id: string) => NetworkFact | undefined,
): EndpointFact | undefined {
  if (bridge === undefined) return undefined;
  return endpoints.find(({ networkId }) => networkOf(networkId)?.bridge === bridge);
}

export function addressesOf({ ipv4, ipv6, mac }: EndpointFact): readonly string[] {
  return [ipv4, ipv6, mac && linkLocalOf(mac)].filter((address) => address !== undefined);
}

/** The networks that none of `links` is on. */
export function missingAmong(
  links: readonly ContainerLink[],
  { endpoints }: ContainerFact,
  networkOf: (id: string) => NetworkFact | undefined,
): readonly NoLink[] {
  return endpoints
    .filter(({ networkId }) => !links.some((link) => link.networkId === networkId))
    .map(({ networkId, networkName }) => {
      const network = networkOf(networkId);
      if (network !== undefined && network.bridge === undefined) {
        const text = `the driver ${network.driver} of network ${networkName} makes no link on the host`;
        return { reason: "other-driver", networkId, text };
      }
      const bridge = network?.bridge === undefined ? "" : ` (bridge ${network.bridge})`;
      return {
        reason: "not-found",
        networkId,
        text: `no link on network ${networkName}${bridge} was found on the host`,
      };
    });
}

/** The link-local IPv6 address that the kernel forms from a MAC address (RFC 4291, appendix A). */
export function linkLocalOf(mac: string): string {
  const bytes = mac.split(":").map((part) => Number.parseInt(part, 16));
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = bytes;
  const groups = [((a ^ FLIP_UNIVERSAL) << 8) | b, (c << 8) | 0xff, 0xfe00 | d, (e << 8) | f];
  return `fe80::${groups.map((group) => group.toString(16)).join(":")}`;
}
