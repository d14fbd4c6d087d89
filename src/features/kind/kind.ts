/**
 * Kind: what runs inside of a container is answered, too: the pods of KIND nodes, and whatever an engine or a builder inside of it starts.
 * It asks at an address of that container, which stands in its resolv.conf.
 */
import { Fault } from "../../base/lib/fault.ts";
import type { ContainerStatus } from "../../api/status.ts";
import type { Settings } from "../../config/settings.ts";
import type { AttachMode, Attaching } from "../../container/attach/attach-mode.ts";
import type { Decision } from "../../container/attach/decision.ts";
import { type ContainerFact, DEFAULT_BRIDGE, isUserDefined } from "../../container/facts/fact.ts";
import type { NodeContext } from "../../container/names/source/name-source.ts";
import { gatewayIn } from "../../container/watch/translate.ts";
import type { ApiRequest, Routes } from "../../control/server/http.ts";
import { findContainer } from "../../control/situation/find-container.ts";
import type { ControlPorts } from "../../control/situation/ports.ts";
import type { EngineCore, RunCore, Running } from "../contract.ts";
import { nodeWarnings } from "./node-fact.ts";
import { Nodes } from "./nodes.ts";

export function open(run: RunCore): Running {
  return new KindInRun(run);
}

const DETACHED: Decision = {
  kind: "skip",
  code: "kind-detached",
  reason:
    "it was detached with `dns11 kind detach`; it is served again after `dns11 kind attach`, or when it or dns11 starts again",
};

/** Reasons of a container on no user-defined network that are no reason of its own. */
const BY_NETWORK: ReadonlySet<string> = new Set(["default-network-only", "no-nameserver", "not-selected", "own-stack"]);
const WITHOUT_RESOLVER =
  "it is a KIND node, or nested, on no user-defined network, so Docker has no resolver there that could answer when dns11 stops; connect it to one, such as kind";

/** What there is in a run for the containers of an engine. */
interface Parts {
  readonly engine: EngineCore;
  readonly nodes: Nodes;
}

class KindInRun implements Running {
  readonly #run: RunCore;
  /** Undefined inside of a KIND node. */
  #parts: Parts | undefined;

  constructor(run: RunCore) {
    this.#run = run;
  }

  engine(engine: EngineCore): void {
    const { onEvent, settings } = this.#run;
    const nodes = new Nodes(
      {
        ...engine,
        networkOf: (id) => engine.directory().network(id),
        onChange: (id) => engine.reconciler().updateCapture(id),
        onEvent,
      },
      settings,
    );
    this.#parts = { engine, nodes };
  }

  configure(settings: Settings): void {
    this.#parts?.nodes.configure(settings);
  }

  engineConnected(): void {
    if (this.#parts !== undefined) void readHostGateway(this.#parts);
  }

  /** A node needs Docker's resolver, which answers its pods when dns11 stops. */
  decide(fact: ContainerFact, decision: Decision): Decision | undefined {
    const nodes = this.#parts?.nodes;
    if (nodes?.isDetached(fact) === true) return DETACHED;
    const hasResolver = fact.endpoints.some(({ networkName }) => isUserDefined(networkName));
    if (hasResolver || nodes?.isNode(fact) !== true) return undefined;
    if (decision.kind === "skip" && !BY_NETWORK.has(decision.code)) return undefined;
    const { warning } = decision;
    const code = "default-network-only";
    return { kind: "skip", code, reason: WITHOUT_RESOLVER, ...(warning !== undefined && { warning }) };
  }

  nodeContextOf(fact: ContainerFact): NodeContext | undefined {
    const nodes = this.#parts?.nodes;
    return nodes?.isNode(fact) === true ? nodes.placeOf(fact) : undefined;
  }

  attach(fact: ContainerFact, decision: Decision, usual: AttachMode | undefined): Attaching | undefined {
    if (this.#parts === undefined) return undefined;
    const { nodes } = this.#parts;
    const isNode = nodes.isNode(fact);
    const mode = isNode && usual !== undefined ? nodes.ensureMode(fact) : usual;
    const found = [nodes.ignoredLabel(fact), ...(isNode ? warningsOf(fact, decision, this.#parts) : [])];
    const warnings = found.filter((text) => text !== undefined);
    if (mode === usual && warnings.length === 0) return undefined;
    return { mode, warning: warnings.length === 0 ? undefined : warnings.join("; ") };
  }

  /** Its resolv.conf. */
  changesFiles(fact: ContainerFact): boolean {
    return this.#parts?.nodes.isNode(fact) === true;
  }

  remove(containerId: string): void {
    this.#parts?.nodes.forget(containerId);
  }

  container(containerId: string): Pick<ContainerStatus, "node"> {
    if (this.#parts === undefined) return {};
    const { engine, nodes } = this.#parts;
    const fact = engine.directory().containers.get(containerId);
    const node = fact !== undefined && nodes.isNode(fact) ? nodes.currentMode(fact.id)?.report() : undefined;
    return node === undefined ? {} : { node };
  }

  routes(ports: ControlPorts): Routes {
    return {
      "POST /v1/kind/detach": (call) => this.#setDetached(ports, call, true),
      "POST /v1/kind/attach": (call) => this.#setDetached(ports, call, false),
    };
  }

  #setDetached({ containers }: ControlPorts, { body }: ApiRequest, isDetached: boolean): { readonly name: string } {
    const node = typeof body === "object" && body !== null && "node" in body ? body.node : undefined;
    if (typeof node !== "string" || node === "") {
      throw new Fault("NO_NODE", 'Field missing: use {"node": "NAME"}');
    }
    const fact = findContainer(containers.facts.values(), node);
    if (this.#parts === undefined) {
      throw new Fault("NOT_FROM_INSIDE", "A node that runs dns11 itself cannot be detached", {
        remedy: "Stop dns11 in the node instead.",
      });
    }
    const { engine, nodes } = this.#parts;
    if (!nodes.isNode(fact)) {
      throw new Fault("NO_SUCH_NODE", `"${fact.name}" is not a KIND node served by this dns11`, {
        remedy: "dns11 kind status lists the nodes.",
      });
    }
    nodes.setDetached(fact, isDetached);
    engine.roster().decide(fact);
    return { name: fact.name };
  }
}

function warningsOf(fact: ContainerFact, decision: Decision, { engine, nodes }: Parts): readonly string[] {
  return nodeWarnings(fact, {
    ...nodes.placeOf(fact),
    swarmNetworks: engine
      .directory()
      .networksAcrossMachines(fact)
      .map(({ name }) => name),
    reason: decision.kind === "skip" ? decision.reason : undefined,
    isNested: nodes.isNested(fact),
  });
}

/** Nodes can also be reached in other ways, and the next connection asks again. */
async function readHostGateway({ engine, nodes }: Parts): Promise<void> {
  const { ipv4, ipv6 } = gatewayIn(await engine.api.network(DEFAULT_BRIDGE).catch(() => undefined));
  if (nodes.setHostGateway(ipv4 ?? ipv6)) engine.roster().refresh();
}
