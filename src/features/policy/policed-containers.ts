/**
 * PolicedContainers: what connects policies that enforce addresses with the containers of the Docker daemon and their links on
 * its host. Where no policy does so, it reads no links and has nothing in the kernel.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { codeOf, reasonOf } from "../../base/lib/fault.ts";
import { OneAtATime } from "../../base/lib/async.ts";
import type { ReportEvent } from "../../base/log/log.ts";
import { addressBytes, type AddressBlock, blockText, readAddressBlock } from "../../base/model/address.ts";
import { listenerAddressBytes } from "../../base/model/listener-addresses.ts";
import type { ContainerFact, NetworkFact } from "../../container/facts/fact.ts";
import { type ContainerLinks, noLinkAtAll } from "../../container/links/container-links.ts";
import type { EngineHost } from "../../container/namespace/engine-host.ts";
import { sharedOwner } from "../../control/situation/find-container.ts";
import { userNamespaceOf } from "../../kernel/process.ts";
import type { Assignment } from "./book/assignment.ts";
import type { Held, PolicyBook } from "./book/policy-book.ts";
import {
  Enforcement,
  type EnforcementState,
  isHolding,
  type EnforcedContainer,
  type EnforcedLink,
  HeldUntilKnown,
} from "./enforce/enforcement.ts";
import { serviceFolder, BootClosing } from "./boot/closed-networks.ts";
import type { ClosedNetwork } from "./model/policy.ts";
import { PolicyTable } from "./table/policy-table.ts";
import { LocalAddresses } from "../../kernel/netlink-watch.ts";
import type { EngineCore, RunCore } from "../contract.ts";

interface HostAddressesParts {
  readonly platform: Pick<EngineCore, "runner" | "memory">;
  readonly host: () => Pick<EngineHost, "network" | "networkId">;
  readonly onEvent: ReportEvent;
}

interface PolicedContainersParts {
  readonly platform: Pick<EngineCore, "runner" | "memory">;
  readonly host: () => Pick<EngineHost, "network" | "networkId" | "pid" | "sharesPids">;
  readonly links: ContainerLinks;
  readonly book: PolicyBook;
  readonly facts: () => ReadonlyMap<string, ContainerFact>;
  readonly networkOf: (id: string) => NetworkFact | undefined;
  /** Whether every running container could be inspected. */
  readonly areAllKnown: () => boolean;
  /** Keeps what is closed for the next boot. */
  readonly boot: BootClosing;
  /** All networks of the engine, also those without containers. */
  readonly listNetworks: () => Promise<readonly NetworkFact[]>;
  readonly onEvent: ReportEvent;
  /** Policies or containers have changed. */
  readonly onPolicies: () => void;
}

/** How long another process may have the tables: as long as it takes to learn all containers, and to drain. */
const OWNED_MS_MAX = 60_000;
const OWNED_POLL_MS = 10;
const LEFTOVERS_POLL_MS = 5_000;

export class PolicedContainers {
  readonly #parts: PolicedContainersParts;
  readonly enforcement: Enforcement;
  readonly #hostAddresses: HostAddresses;
  readonly #assignments = new Map<string, Assignment>();
  readonly #unknown: HeldUntilKnown;
  #table: Promise<PolicyTable> | undefined;
  #isClosed = false;
  /** The networks that are closed from the beginning: their names, and all of them as text; none before this process has set them. */
  #closed: { readonly names: ReadonlySet<string>; readonly ids: readonly string[]; readonly text: string } = {
    names: new Set(),
    ids: [],
    text: "",
  };
  /** Containers with the rights of root on the host, by the id of the one whose network namespace they share. */
  #privilegedSharers: ReadonlyMap<string, ContainerFact> = new Map();
  readonly #closing: OneAtATime;
  #onLost: () => void = () => undefined;

  constructor(parts: PolicedContainersParts) {
    this.#parts = parts;
    const { book, links } = parts;
    this.#hostAddresses = new HostAddresses(parts);
    this.enforcement = new Enforcement({
      openTable: async (onLost) => {
        this.#onLost = onLost;
        return await this.#openedTable();
      },
      containerOf: (id) => this.#containerOf(id),
      policyOf: (id) => book.policyOf(id),
      onState: (id, state) => this.#onState(id, state),
    });
    this.#closing = new OneAtATime(
      async () => await this.#closeListed(),
      (error) => parts.onEvent({ reason: reasonOf(error) }, "cannot close the networks of policies", "warn"),
    );
    this.#unknown = new HeldUntilKnown({
      isHolding: () => this.isHolding,
      hold: async (held, keepsOthers) => await (await this.#openedTable()).hold(held, keepsOthers),
      stateOf: (id) => this.enforcement.stateOf(id),
      onHeld: (id) =>
        parts.onEvent({ container: id.slice(0, 12) }, "holding a container that Docker does not describe", "warn"),
      onError: (error) =>
        parts.onEvent({ reason: reasonOf(error) }, "cannot hold a container that is not known", "warn"),
    });
    book.onRefreshed = () => {
      this.#refresh();
      parts.onPolicies();
    };
    book.onAssigned = (policy) => {
      this.#assignments.set(policy.containerId, book.assignmentOf(policy.containerId));
      this.enforcement.assigned(policy);
    };
    book.heldOf = (id) => this.#heldOf(id);
    book.endedRefusals = () => this.enforcement.ended;
    book.closedNetworks = () => this.#closed.ids;
    book.isHosts = (address) => this.#hostAddresses.has(address);
    book.openAddresses = (answer, onOpen) => this.enforcement.open(answer, onOpen);
    links.onChange((id) => this.enforcement.update(id));
  }

  /** Whether a policy needs the kernel. */
  get isOn(): boolean {
    return this.#parts.book.policies.some(({ addresses }) => addresses === "enforce");
  }

  /** Whether a policy holds connections. */
  get isHolding(): boolean {
    return this.#parts.book.policies.some(isHolding);
  }

  /** Nothing is known of a container but its addresses: nothing passes from them until `release`, where a policy holds connections. */
  hold(id: string, addresses: readonly Uint8Array[]): void {
    this.#unknown.late(id, addresses);
  }

  /** The container is known, or gone. */
  release(id: string): void {
    this.#unknown.known(id);
    this.#parts.book.containersChanged();
  }

  /** The running containers have been inspected: what an earlier process has left for others can go, once that is true of all. */
  async synced(): Promise<void> {
    this.#refresh();
    if (!this.isOn) {
      await this.#keepForBoot([]);
      await this.#removeTables();
      return;
    }
    await this.#removeLeftovers();
  }

  /** The process that this one replaces may still have them, or make them again. */
  async #removeTables(): Promise<void> {
    const { platform, onEvent } = this.#parts;
    const deadlineMs = performance.now() + OWNED_MS_MAX;
    let pollMs = OWNED_POLL_MS;
    for (; !this.isOn && !this.#isClosed; await sleep(pollMs, undefined, { ref: false })) {
      try {
        if (!(await PolicyTable.removeLeft({ memory: platform.memory, within: this.#within }))) return;
        onEvent({}, "removed the tables of policies: no policy enforces addresses any more");
        pollMs = LEFTOVERS_POLL_MS;
      } catch (error) {
        if (codeOf(error) === "EPERM" && performance.now() < deadlineMs) continue;
        const text = "cannot remove the tables of policies: what they refuse stays refused";
        onEvent({ reason: reasonOf(error) }, text, "warn");
        return;
      }
    }
  }

  /** Nothing is concluded before every running container has been inspected: one of them may share the namespace of another. */
  async #removeLeftovers(): Promise<void> {
    const { areAllKnown, links, onEvent } = this.#parts;
    for (; this.isOn && !this.#isClosed; await sleep(LEFTOVERS_POLL_MS, undefined, { ref: false })) {
      if (!areAllKnown()) continue;
      try {
        await links.settled();
        this.#unknown.releaseOthers();
        if (await this.enforcement.removeOthers()) return;
      } catch (error) {
        onEvent({ reason: reasonOf(error) }, "cannot remove the rules for containers that are gone", "warn");
      }
    }
  }

  /** A network was made or removed. */
  networksChanged(): void {
    if (this.isOn) this.#closing.request();
  }

  close(): void {
    this.#isClosed = true;
    this.enforcement.close();
    this.#hostAddresses.close();
    void this.#table?.then(
      (table) => table[Symbol.dispose](),
      () => undefined,
    );
  }

  readonly #within = <T>(work: () => T): T => {
    const { platform, host } = this.#parts;
    return platform.runner.within(host().network, work);
  };

  async #openedTable(): Promise<PolicyTable> {
    this.#table ??= this.#openTable();
    try {
      return await this.#table;
    } catch (error) {
      this.#table = undefined;
      throw error;
    }
  }

  /** The process that this one replaces has the tables until it has answered what it has read. */
  async #openTable(): Promise<PolicyTable> {
    const { memory } = this.#parts.platform;
    const deadlineMs = performance.now() + OWNED_MS_MAX;
    const resolvers = listenerAddressBytes();
    for (;;) {
      try {
        return await PolicyTable.open({
          memory,
          within: this.#within,
          resolvers,
          onLost: (error) => this.#lost(error),
        });
      } catch (error) {
        if (codeOf(error) !== "POLICY_OWNED" || performance.now() > deadlineMs || this.#isClosed) throw error;
      }
      await sleep(OWNED_POLL_MS);
    }
  }

  /** Packets have passed in between, so it is said. */
  #lost(error: unknown): void {
    if (this.#isClosed) return;
    const reason = error === undefined ? {} : { reason: reasonOf(error) };
    const outcome = error === undefined ? "and they are made again" : "and cannot be made again";
    this.#parts.onEvent(reason, `another program has removed the tables of policies, ${outcome}`, "warn");
    this.#onLost();
  }

  #refresh(): void {
    if (!this.isOn && this.#table === undefined) {
      this.#unknown.assigned();
      return;
    }
    const assignments = this.#parts.book.assignments();
    const { links, facts } = this.#parts;
    this.#assignments.clear();
    for (const [id, assignment] of assignments) this.#assignments.set(id, assignment);
    this.#privilegedSharers = this.#findPrivilegedSharers();
    if (!links.isStarted) void links.start(facts().values());
    this.enforcement.updateAll(assignments.keys());
    this.#closing.request();
    this.#unknown.assigned();
  }

  /** Networks that an enforced policy is for are closed until each container on them is known. */
  async #closeListed(): Promise<void> {
    const names = new Set(this.#networkNames());
    const listed = names.size === 0 ? [] : await this.#parts.listNetworks();
    const meant = listed.filter(({ name }) => names.has(name));
    const networks = meant.map(closedNetwork);
    const text = JSON.stringify(networks.map(({ bridge, blocks }) => [bridge, blocks.map(blockText)]));
    if (text !== this.#closed.text) {
      await (await this.#openedTable()).setNetworks(networks);
      await this.#keepForBoot(networks);
    }
    this.#closed = { names, ids: meant.map(({ id }) => id), text };
  }

  async #keepForBoot(networks: readonly ClosedNetwork[]): Promise<void> {
    const reason = await this.#parts.boot.keep(networks);
    if (reason !== undefined)
      this.#parts.onEvent({ reason }, "cannot keep which networks are to be closed at boot", "warn");
  }

  *#networkNames(): Generator<string> {
    for (const policy of this.#parts.book.policies) {
      if (!isHolding(policy)) continue;
      for (const scope of policy.scopes) if (scope.kind === "network") yield scope.name;
    }
  }

  #containerOf(id: string): EnforcedContainer | undefined {
    const fact = this.#parts.facts().get(id);
    const compiled = this.#assignments.get(id)?.policies ?? [];
    const policies = compiled.map(({ policy }) => policy).filter(({ addresses }) => addresses === "enforce");
    if (fact === undefined || policies.length === 0) return undefined;
    const { links, missing } = this.#parts.links.of(id);
    const usable = links.map(enforcedLink);
    const isLinked = fact.endpoints.every(({ networkId }) => links.some((link) => link.networkId === networkId));
    const sharer = this.#privilegedSharers.get(id);
    const privileged = this.#hasRootRights(fact)
      ? "it"
      : sharer && `${sharer.name}, which shares its network namespace,`;
    const hindrance =
      privileged !== undefined
        ? `${privileged} may do what root may do on the host (privileged, or with a capability such as SYS_ADMIN or NET_ADMIN)`
        : (missing.find(({ reason }) => reason !== "no-network" && reason !== "not-found")?.text ??
          (usable.includes(undefined) ? "Docker does not say which addresses one of its links has" : undefined));
    return {
      id,
      startedAt: fact.startedAt,
      policies,
      links: usable.filter((link) => link !== undefined),
      subnets: fact.endpoints.flatMap(({ networkId }) => blocksOf(this.#parts.networkOf(networkId))),
      isComplete: isLinked || noLinkAtAll(fact)?.reason === "no-network",
      hindrance,
    };
  }

  /** Whether it may do what root may do on the host. */
  #hasRootRights(fact: ContainerFact): boolean {
    return fact.isPrivileged === true && !isInUserNamespace(fact, this.#parts.host());
  }

  #findPrivilegedSharers(): Map<string, ContainerFact> {
    const facts = this.#parts.facts();
    const found = new Map<string, ContainerFact>();
    for (const fact of facts.values()) {
      const owner = fact.isPrivileged === true ? sharedOwner(facts, fact) : undefined;
      if (owner !== undefined && this.#hasRootRights(fact)) found.set(owner.id, fact);
    }
    return found;
  }

  #heldOf(id: string): Held | undefined {
    const state = this.enforcement.stateOf(id);
    if (state === undefined) return undefined;
    const { facts } = this.#parts;
    return {
      state: state.kind,
      reason: "reason" in state ? state.reason : undefined,
      isClosedAtBirth:
        facts()
          .get(id)
          ?.endpoints.every(({ networkName }) => this.#closed.names.has(networkName)) === true,
      isDockerHeld: asksFromContainer(facts().get(id)),
      bootProblem: this.#parts.boot.problem,
      open: this.enforcement.openCount(id),
      refused: () => this.enforcement.refused(id),
    };
  }

  #onState(id: string, state: EnforcementState): void {
    this.#unknown.refresh();
    const container = this.#parts.facts().get(id)?.name ?? id.slice(0, 12);
    const { onEvent } = this.#parts;
    if (state.kind === "hindered")
      onEvent(
        { container, reason: state.reason },
        "a policy is not enforceable: the container resolves nothing",
        "warn",
      );
    if (state.kind === "failed")
      onEvent(
        { container, reason: state.reason },
        "cannot enforce a policy: the container resolves nothing yet",
        "warn",
      );
  }
}

/** Servers that a container was given, also by daemon.json, are asked from there; those of the host from the host. */
function asksFromContainer(fact: ContainerFact | undefined): boolean {
  const nameservers = fact?.nameservers;
  if (nameservers?.kind === "captured" || (nameservers?.kind === "host" && nameservers.isByListener === true))
    return true;
  return nameservers?.kind === "listed" && nameservers.servers.every(({ from }) => from === "container");
}

/** Whether its capabilities count only in a user namespace of its own. False if that is not known. */
function isInUserNamespace({ pid }: ContainerFact, host: Pick<EngineHost, "pid" | "sharesPids">): boolean {
  if (!host.sharesPids) return false;
  const [own, engines] = [userNamespaceOf(pid), userNamespaceOf(host.pid)];
  return own !== undefined && engines !== undefined && own !== engines;
}

function enforcedLink(link: ReturnType<ContainerLinks["of"]>["links"][number]): EnforcedLink | undefined {
  const { index, name, mac, addresses, bridgeMac } = link;
  const bytes = addresses.map((address) => addressBytes(address));
  if (mac === undefined || bytes.includes(undefined)) return undefined;
  return {
    index,
    name,
    mac: Buffer.from(mac.replaceAll(":", ""), "hex"),
    addresses: bytes.filter((each) => each !== undefined),
    bridgeMac,
  };
}

function closedNetwork(network: NetworkFact): ClosedNetwork {
  return { name: network.name, bridge: network.bridge, blocks: blocksOf(network) };
}

function blocksOf(network: NetworkFact | undefined): AddressBlock[] {
  return (network?.addressBlocks ?? []).flatMap((text) => readAddressBlock(text) ?? []);
}

export function openPoliced(
  book: PolicyBook,
  core: EngineCore,
  { onEvent }: Pick<RunCore, "onEvent">,
): PolicedContainers {
  const { host, links, areAllKnown, listNetworks } = core;
  return new PolicedContainers({
    platform: core,
    ...{ host, links, areAllKnown, listNetworks, book, onEvent },
    boot: new BootClosing({ folder: serviceFolder() }),
    facts: () => core.directory().containers,
    networkOf: (id) => core.directory().network(id),
    onPolicies: () => core.reconciler().renewPolicies(),
  });
}

/**
 * Which addresses are those of the engine's host itself, where containers with a policy must not reach it. Nothing is
 * opened before somebody asks.
 */
class HostAddresses {
  readonly #parts: HostAddressesParts;
  #opened: { readonly networkId: string; readonly addresses: LocalAddresses } | undefined;
  #hasFailed = false;

  constructor(parts: HostAddressesParts) {
    this.#parts = parts;
  }

  /** While the kernel does not say so, every address is one: an answer too few is better than an open machine. */
  has(address: Uint8Array): boolean {
    try {
      const isHosts = this.#addresses().has(address);
      this.#hasFailed = false;
      return isHosts;
    } catch (error) {
      this.#failed(error);
      return true;
    }
  }

  close(): void {
    this.#opened?.addresses.close();
    this.#opened = undefined;
  }

  /** An engine that starts again may be in another namespace. */
  #addresses(): LocalAddresses {
    const { platform, host } = this.#parts;
    const { network, networkId } = host();
    if (this.#opened?.networkId === networkId) return this.#opened.addresses;
    this.close();
    const addresses = platform.runner.within(network, () => new LocalAddresses(platform.memory));
    this.#opened = { networkId, addresses };
    return addresses;
  }

  #failed(error: unknown): void {
    this.close();
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const text = "cannot read which addresses are the host's: policies with host: deny refuse answers meanwhile";
    this.#parts.onEvent({ reason: reasonOf(error) }, text, "warn");
  }
}
