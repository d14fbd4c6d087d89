/**
 * UnknownContainers: running containers that might have an enforced policy, and that the engine does not describe: it takes long
 * to, which the author of an image can make happen, or fails to. They are held: what they send is dropped, and dns11 serves them
 * with a policy that allows nothing, so that Docker's resolver forwards nothing for them either.
 */
import { guard } from "../../base/lib/guard.ts";
import { addressBytes } from "../../base/model/address.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { EngineHost } from "../../container/namespace/engine-host.ts";
import { type Sandbox, findSandbox, sandboxFolder } from "../../container/namespace/find-sandbox.ts";
import type { LateEndpoint, LateHooks } from "../../container/watch/late-containers.ts";

interface UnknownContainersParts {
  readonly host: () => Pick<EngineHost, "root" | "sharesPids">;
  readonly facts: () => ReadonlyMap<string, ContainerFact>;
  /** Whether a policy holds connections: otherwise nobody is held. */
  readonly isHolding: () => boolean;
  readonly hold: (id: string, addresses: readonly Uint8Array[]) => void;
  /** The container is known, or gone: whether and how it is held follows from its policies. */
  readonly release: (id: string) => void;
  /** To be served, as far as it is known. */
  readonly serve: (fact: ContainerFact) => void;
}

/** A container's first process may not have its namespace yet. */
const LOOK_AGAIN_MS = 100;
const LOOKS_MAX = 50;

export class UnknownContainers implements LateHooks {
  readonly #parts: UnknownContainersParts;
  readonly #late = new Map<string, readonly LateEndpoint[]>();

  constructor(parts: UnknownContainersParts) {
    this.#parts = parts;
  }

  readonly onLate = (id: string, endpoints: readonly LateEndpoint[]): void => {
    const addresses = endpoints.flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6].flatMap((text) => text ?? []));
    this.#parts.hold(
      id,
      addresses.flatMap((text) => addressBytes(text) ?? []),
    );
    const isNew = !this.#late.has(id);
    this.#late.set(id, endpoints);
    if (isNew && this.#parts.isHolding()) void this.#look(id, LOOKS_MAX);
  };

  readonly onKnown = (id: string): void => {
    this.#late.delete(id);
    this.#parts.release(id);
  };

  async #look(id: string, looksLeft: number): Promise<void> {
    const { host, facts, serve } = this.#parts;
    const sandbox = await findSandbox(id, host(), sandboxFolder(facts().values()));
    const endpoints = this.#late.get(id);
    // What was known of it before holds until it is described again.
    if (endpoints === undefined || facts().has(id)) return;
    if (sandbox !== undefined) guard.run("attach", 0, () => serve(undescribed(id, sandbox, endpoints)));
    else if (looksLeft > 1) setTimeout(() => void this.#look(id, looksLeft - 1), LOOK_AGAIN_MS).unref();
  }
}

function undescribed(
  id: string,
  { path: sandboxKey, pid }: Sandbox,
  endpoints: readonly LateEndpoint[],
): ContainerFact {
  const [first] = endpoints;
  return {
    ...{ id, name: id.slice(0, 12), isUndescribed: true, startedAt: "", isPaused: false, health: undefined, pid },
    ...{ sandboxKey, networkMode: first?.networkName ?? "", hostname: "", domainName: "" },
    ...{
      labels: {},
      imageLabels: { labels: {}, source: "unknown" },
      ports: { published: [], exposed: [], ofImage: [] },
    },
    ...{
      resolvConfPath: undefined,
      kindSearch: undefined,
      extraHosts: [],
      nameservers: { kind: "listed", servers: [], isNdotsSet: false, isOwn: false },
    },
    endpoints: endpoints.map((endpoint) => ({
      ...{ ...endpoint, endpointId: "", names: [], links: [], gatewayPriority: 0 },
      ...{ ipv4Gateway: undefined, ipv6Gateway: undefined },
    })),
    onDefaultBridge: undefined,
  };
}
