/**
 * DefaultBridge: containers on the default bridge resolve each other, which Docker has no names for. Those that are on no other network,
 * where Docker has no resolver, are served at the servers of their resolv.conf. A container may write that file at any time: it is
 * watched, also while it names no server, and read when it has been quiet for a moment.
 */
import { isIPv6 } from "node:net";

import { Fault } from "../../base/lib/fault.ts";
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import type { FailureCode } from "../../base/model/finding.ts";
import type { VisibleNames } from "../../base/model/visible-names.ts";
import type { AttachMode, Attaching, ServedNamespace } from "../../container/attach/attach-mode.ts";
import type { Decision } from "../../container/attach/decision.ts";
import { type Capture, DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { type ContainerFact, DEFAULT_BRIDGE } from "../../container/facts/fact.ts";
import { DockerNames } from "../../container/names/docker/docker-names.ts";
import { NetworkNames } from "../../container/names/docker/network-names.ts";
import { visibleNetwork } from "../../container/names/docker/networks.ts";
import { NO_NAMES, type NameSource, type NamedContainer } from "../../container/names/source/name-source.ts";
import { type EngineHost, isContainerPath } from "../../container/namespace/engine-host.ts";
import { isIpv6Enabled } from "../../container/namespace/ipv6.ts";
import { DebounceTimer } from "../../container/watch/debounce-timer.ts";
import { openInRoot } from "../../kernel/libc.ts";
import { onNextWrite } from "../../kernel/regular-file.ts";
import type { Running } from "../contract.ts";

/** Loopback addresses of the container: nothing outside reaches them. */
const BIND = { ipv4: DOCKER_RESOLVER, ipv6: "::1" };

const BRIDGE = { id: DEFAULT_BRIDGE, name: DEFAULT_BRIDGE };

export function open(): Running {
  // Inside of a KIND node there is no engine.
  let bridges: Bridges | undefined;
  return {
    makeNames: ({ defaultBridge }) => ({
      place: "default-bridge",
      source: defaultBridge === "off" ? NO_NAMES : new BridgeNames(),
    }),
    engine: ({ host, reinspect, reconciler }) => {
      bridges = new Bridges({ host, onChange: (id) => reconciler().updateCapture(id), onFileChange: reinspect });
    },
    attach: (fact, decision) => bridges?.attach(fact, decision),
    remove: (id) => bridges?.forget(id),
    stop: async () => await Promise.resolve(bridges?.close()),
  };
}

interface BridgesParts {
  readonly host: () => EngineHost;
  /** The captured addresses of a container may have changed. */
  readonly onChange: (containerId: string) => void;
  /** The resolv.conf of a container may have changed: determine its facts again. */
  readonly onFileChange: (containerId: string) => void;
}

interface KnownBridge {
  readonly startedAt: string;
  readonly mode: BridgeMode;
  readonly unwatch: () => void;
}

/** The containers on the default bridge alone, each with its BridgeMode and a watch of its resolv.conf. */
export class Bridges {
  readonly #parts: BridgesParts;
  readonly #known = new Map<string, KnownBridge>();

  constructor(parts: BridgesParts) {
    this.#parts = parts;
  }

  /** Its file is followed, too, where it is not served for want of a server there: then it may name one later. */
  attach(fact: ContainerFact, decision: Decision): Attaching | undefined {
    if (decision.kind === "serve" && fact.nameservers.kind === "captured") return { mode: this.ensureMode(fact) };
    if (decision.kind === "skip" && decision.code === "no-nameserver") this.ensureMode(fact);
    else this.forget(fact.id);
    return undefined;
  }

  /** Creates or updates the mode of this start of the container, and follows its file. */
  ensureMode(fact: ContainerFact): BridgeMode {
    const servers = fact.nameservers.kind === "captured" ? fact.nameservers.servers : [];
    const known = this.#known.get(fact.id);
    if (known?.startedAt === fact.startedAt) {
      // Without a server the container is about to be left alone.
      if (known.mode.update(servers) && servers.length > 0) this.#parts.onChange(fact.id);
      return known.mode;
    }
    this.forget(fact.id);
    const mode = new BridgeMode(servers);
    this.#known.set(fact.id, { startedAt: fact.startedAt, mode, unwatch: this.#watch(fact) });
    return mode;
  }

  forget(containerId: string): void {
    this.#known.get(containerId)?.unwatch();
    this.#known.delete(containerId);
  }

  close(): void {
    for (const id of [...this.#known.keys()]) this.forget(id);
  }

  /**
   * Watches the file itself, not its folder, where the container's log is written: the file is mounted in the container,
   * so nobody can replace it. Where the kernel refuses a watch, the file is read at events of the container only. The watch ends
   * with the first write, and begins again before the file is read.
   */
  #watch({ id, resolvConfPath: path = "" }: ContainerFact): () => void {
    if (!isContainerPath(path, id)) return () => undefined;
    const timer = new DebounceTimer(() => {
      timer.cancel();
      endWatch = begin();
      this.#parts.onFileChange(id);
    });
    const begin = (): (() => void) =>
      onNextWrite(
        (flags) => openInRoot(this.#parts.host().root, path, flags),
        () => timer.trigger(),
      );
    let endWatch = begin();
    return () => {
      endWatch();
      timer.cancel();
    };
  }
}

/**
 * Attaches to a container on the default bridge, which has no resolver of Docker's. It captures port 53 of
 * the servers in the container's resolv.conf, and writes no file: without our rules, queries go to these servers as
 * before.
 */
export class BridgeMode implements AttachMode {
  #servers: readonly string[];
  #captured: readonly string[] = [];

  constructor(servers: readonly string[]) {
    this.#servers = servers;
  }

  /** Takes the servers of a changed file. Returns whether other addresses are to be captured. */
  update(servers: readonly string[]): boolean {
    const isSame = servers.length === this.#servers.length && servers.every((each, at) => each === this.#servers[at]);
    this.#servers = servers;
    return !isSame;
  }

  /** A pair of sockets for each server, so that even a reply whose conntrack entry is gone has the right source. */
  capture(): Capture {
    const hasIpv6 = isIpv6Enabled();
    this.#captured = this.#servers.filter((server) => hasIpv6 || !isIPv6(server));
    if (this.#captured.length === 0) {
      throw new Fault(
        "ATTACH_FAILED" satisfies FailureCode,
        "Its resolv.conf has IPv6 servers only, and IPv6 is off there",
      );
    }
    const redirects = this.#captured.map((server) => ({
      bind: isIPv6(server) ? BIND.ipv6 : BIND.ipv4,
      fromInside: [server],
      fromPods: [],
      replySource: server,
    }));
    return { redirects, bypassInterfaces: [], guardsLoopback: false };
  }

  /** The first server was probed before; the other family takes other rules. */
  async onVerified(served: ServedNamespace): Promise<void> {
    const [first = ""] = this.#captured;
    const other = this.#captured.find((server) => isIPv6(server) !== isIPv6(first));
    if (other === undefined) return;
    // A probe may be lost on a busy machine.
    for (let attempt = 0; attempt < 2; attempt++) if ((await served.probe(other)).kind !== "broken") return;
    throw new Fault("UNVERIFIED" satisfies FailureCode, `Queries to ${other} do not reach dns11`);
  }

  withdraw(): void {
    // Nothing was announced.
  }
}

/** A container that is also on other networks resolves there what it did before: these names come after those of networks. */
class BridgeNames implements NameSource {
  readonly #names = new NetworkNames(DEFAULT_BRIDGE);

  join({ fact: { id, onDefaultBridge: endpoint }, traits, project }: NamedContainer): void {
    if (endpoint === undefined) this.#names.remove(id);
    else this.#names.put(id, { ...endpoint, ...traits, project });
  }

  leave({ id }: ContainerFact): void {
    this.#names.remove(id);
  }

  namesFor({ onDefaultBridge: endpoint }: ContainerFact): VisibleNames | undefined {
    if (endpoint === undefined) return undefined;
    return new DockerNames(
      [visibleNetwork(BRIDGE, this.#names, endpoint.links)],
      undefined,
      LOCAL_SOURCE.defaultBridge,
    );
  }
}
