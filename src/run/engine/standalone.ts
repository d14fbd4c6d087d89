/**
 * Standalone: lookups and explanations without a running dns11. The engine is read once, and queries are sent from inside
 * the container, as its programs send them. Without the capabilities to enter a container only the engine is read.
 */
import { engineAddress } from "../../api/engine-address.ts";
import type { Explanation, Lookup, LookupRequest, NameRequest } from "../../api/names.ts";
import { LIMITS } from "../../base/limits.ts";
import { STRICT_BEHAVIOUR } from "../../base/model/behaviour.ts";
import type { NamedContainer } from "../../base/model/container-choice.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { closeEngineHost, socketPeerPid } from "../../container/namespace/engine-host.ts";
import { openOwnEngineHost } from "../../container/namespace/engine-owner.ts";
import { NamespaceRunner } from "../../container/namespace/namespace-runner.ts";
import { checkCapabilities } from "../../container/preflight.ts";
import { Directory } from "../../container/registry/directory.ts";
import { Engine, type EngineInfo } from "../../container/watch/engine.ts";
import { apiFiles } from "../../container/watch/container-files.ts";
import { Follower } from "../../container/watch/follower.ts";
import { explainFromInside } from "../../control/explain/explain.ts";
import { namedContainer } from "../../control/situation/find-container.ts";
import { lookup } from "../../control/explain/lookup.ts";
import { type ContainerAccess, NO_FEATURE_FIELDS } from "../../control/situation/ports.ts";
import type { SituationPorts } from "../../control/situation/situations.ts";
import { LOCAL_ONLY_DEFAULTS } from "../../base/model/upstream-policy.ts";
import { ForwardingRules } from "../../query/lookup/forwarding-rules.ts";
import { insideOf } from "./engine-ports.ts";
import { EngineNetworks } from "./engine-networks.ts";
import { StoppedContainers } from "./stopped-containers.ts";

const NOT_RUNNING = "dns11 is not running";

interface Access {
  readonly inside: ContainerAccess;
  readonly close: () => void;
}

export class Standalone {
  readonly #ports: SituationPorts;
  readonly #access: Access;
  readonly #signal: AbortSignal;

  private constructor(ports: SituationPorts, access: Access, signal: AbortSignal) {
    this.#ports = ports;
    this.#access = access;
    this.#signal = signal;
  }

  /** Reads the containers of the engine that -H selects. */
  static async open(host: string | undefined, signal: AbortSignal): Promise<Standalone> {
    const { socketPath } = engineAddress(host, process.env);
    const engine = new Engine(socketPath);
    const directory = await readDirectory(engine);
    const stopped = new StoppedContainers(engine, (id) => directory.containers.has(id));
    const networks = new EngineNetworks(engine);
    const access = accessTo(socketPath, await engine.describe());
    const rules = new ForwardingRules(STRICT_BEHAVIOUR, LOCAL_ONLY_DEFAULTS);
    const ports: SituationPorts = {
      containers: {
        facts: directory.containers,
        decisionOf: () => undefined,
        attachmentOf: () => undefined,
        clients: { collect: () => undefined, of: () => undefined, recentOf: () => undefined },
        viewOf: (fact) => directory.viewOf(fact),
        defaultBridge: () => "off",
        formerAddresses: () => [],
        formerNames: () => [],
        stopped: async () => await stopped.list(),
        networks: async () => await networks.list(),
        elsewhere: undefined,
        ofFeatures: NO_FEATURE_FIELDS,
      },
      inside: access.inside,
      resolver: () => ({ upstreamState: undefined, behaviour: STRICT_BEHAVIOUR, rules }),
      histories: { histories: () => [] },
    };
    return new Standalone(ports, access, signal);
  }

  async containers(): Promise<readonly NamedContainer[]> {
    return await Promise.resolve([...this.#ports.containers.facts.values()].map(namedContainer));
  }

  async explain(nameRequest: NameRequest): Promise<Explanation> {
    return await explainFromInside(this.#ports, nameRequest, NOT_RUNNING, this.#signal);
  }

  async lookup(lookupRequest: LookupRequest): Promise<Lookup> {
    return await lookup(this.#ports, lookupRequest, this.#signal);
  }

  close(): void {
    this.#access.close();
  }
}

/** The nameservers of containers are left to Docker's resolver, which answers while no dns11 does. */
async function readDirectory(engine: Engine): Promise<Directory> {
  const directory = new Directory({ serversMax: LIMITS.upstreamServers, ownAddress: DOCKER_RESOLVER });
  const noop = (): void => undefined;
  const follower = new Follower(engine, {
    onConnected: noop,
    onDisconnected: noop,
    onSynced: noop,
    onNetwork: (fact) => directory.putNetwork(fact),
    onNetworkGone: noop,
    onContainer: (fact) => directory.putContainer(fact),
    onContainerGone: noop,
    onInspectFailed: noop,
    filesOf: apiFiles,
    known: () => directory.containers,
    hasNetwork: (id) => directory.network(id) !== undefined,
    knownNetworks: () => [],
  });
  await follower.once();
  return directory;
}

/** The way into containers; every use of it throws if there is none. */
function accessTo(socketPath: string, info: EngineInfo): Access {
  try {
    checkCapabilities();
    const host = openOwnEngineHost(info, socketPeerPid(socketPath));
    const runner = new NamespaceRunner();
    return {
      inside: insideOf({ host: () => host }, { runner }),
      close: () => {
        runner.close();
        closeEngineHost(host);
      },
    };
  } catch (error) {
    const open = (): never => {
      throw error;
    };
    return { inside: { open, resolvConfOf: () => undefined }, close: () => undefined };
  }
}
