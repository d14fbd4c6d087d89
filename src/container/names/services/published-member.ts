import { Fault } from "../../../base/lib/fault.ts";
import { addressBytes, isHostScoped, isSameAddress } from "../../../base/model/address.ts";
import type { LabelPolicy } from "../../../base/model/name-choices.ts";
import type { BoundPort, ContainerFact, EndpointFact, NetworkFact } from "../../facts/fact.ts";
import { servicePlace } from "../../facts/label-service.ts";
import type { ServicePort } from "../../facts/service-port.ts";
import type { Addresses, MemberEndpoint, MemberReach } from "./member.ts";

/**
 * A container as other machines know it, and at which address they reach it: its own on a network that they are on or have a
 * route to, otherwise that of this machine and the ports that are published there. Containers of its swarm networks reach it
 * by its own address in any case.
 */
export interface PublishedMember extends Addresses {
  readonly project: string;
  readonly service: string;
  /** The first characters of the container's ID. */
  readonly id: string;
  readonly isReady: boolean;
  readonly hosts: readonly string[];
  readonly ports: readonly ServicePort[];
  readonly reach: MemberReach;
  /** Containers of its swarm networks reach it there; undefined if it is on none. */
  readonly inside: InsideSwarm | undefined;
}

/** Its own addresses and port numbers, which other containers of these networks use. */
export interface InsideSwarm {
  readonly ports: readonly ServicePort[];
  readonly networks: readonly MemberEndpoint[];
}

export const SWARM_NETWORKS_MAX = 4;

interface PublishContext {
  /** Networks whose container addresses other machines reach. */
  readonly routedNetworks: readonly string[];
  readonly labels: LabelPolicy;
  /** The addresses at which other machines reach published ports of this one. */
  readonly addresses: readonly string[];
  readonly networkOf: (id: string) => NetworkFact | undefined;
}

/** The code of the Fault for a container that is no member of a service. */
export const NO_SERVICE = "PUBLISH_NO_SERVICE";

/** Networks whose containers have addresses of the network that the machine itself is on. */
export const ON_THE_WIRE: ReadonlySet<string> = new Set(["macvlan", "ipvlan"]);
const ID_CHARS = 12;

type Reached = Pick<PublishedMember, "reach" | "inside" | "v4" | "v6" | "ports">;

/** Whether a published port is bound at an address of the host. */
export function isBoundAt({ address }: Pick<BoundPort, "address">, own: string): boolean {
  return address === (own.includes(":") ? "::" : "0.0.0.0") || isSameAddress(address, own);
}

/** Throws a Fault for a container that is no member of a service, or that others do not reach. */
export function publishedMember(fact: ContainerFact, context: PublishContext): PublishedMember {
  const place = servicePlace(fact, context.labels);
  if (place === undefined) throw noServiceFault();
  const isReady = !fact.isPaused && (fact.health === undefined || fact.health === "healthy");
  const { project, service, hosts, ports } = place;
  const reached = onTheWire(fact, ports, context) ?? insideOrMachine(fact, ports, context);
  return { project, service, hosts, id: fact.id.slice(0, ID_CHARS), isReady, ...reached };
}

/** Its own address, which all machines reach. */
function onTheWire(
  { endpoints }: ContainerFact,
  ports: readonly ServicePort[],
  { routedNetworks, networkOf }: PublishContext,
): Reached | undefined {
  const found = endpointsOn(endpoints, ({ networkId }) => {
    const network = networkOf(networkId);
    return network !== undefined && (ON_THE_WIRE.has(network.driver) || routedNetworks.includes(network.name));
  })[0];
  return found && { reach: "container", inside: undefined, v4: found.v4, v6: found.v6, ports };
}

/** Published ports are for those who are not on its swarm networks; without any, only those who are reach it. */
function insideOrMachine(fact: ContainerFact, ports: readonly ServicePort[], context: PublishContext): Reached {
  const inside = insideSwarm(fact, ports, context);
  try {
    return { ...machineAddress(fact, ports, context), inside };
  } catch (error) {
    const [first] = inside?.networks ?? [];
    if (first === undefined) throw error;
    return { reach: "swarm", inside, v4: first.v4, v6: first.v6, ports };
  }
}

function insideSwarm(
  { endpoints }: ContainerFact,
  ports: readonly ServicePort[],
  { networkOf }: PublishContext,
): InsideSwarm | undefined {
  const networks = endpointsOn(endpoints, ({ networkId }) => networkOf(networkId)?.swarm?.isIngress === false);
  return networks.length === 0 ? undefined : { ports, networks: networks.slice(0, SWARM_NETWORKS_MAX) };
}

function endpointsOn(
  endpoints: readonly EndpointFact[],
  isWanted: (each: EndpointFact) => boolean,
): InsideSwarm["networks"] {
  return endpoints.flatMap((endpoint) => {
    const { v4, v6 } = addressesOf(endpoint);
    return v4.length + v6.length === 0 || !isWanted(endpoint) ? [] : [{ networkId: endpoint.networkId, v4, v6 }];
  });
}

function machineAddress(
  { ports: { bound = [] } }: ContainerFact,
  ports: readonly ServicePort[],
  { addresses }: PublishContext,
): Omit<Reached, "inside"> {
  const own = addresses.filter((text) => !isHostScoped(text));
  const used = bound.filter((port) => own.some((each) => isBoundAt(port, each)));
  if (bound.length === 0) throw noPortFault();
  if (own.length === 0) throw noAddressFault();
  if (used.length === 0) throw otherAddressFault(bound, own);
  const isSame = used.every(({ port, hostPort }) => Number.parseInt(port, 10) === hostPort);
  const mapped = ports.flatMap((port) => mappedPort(port, used));
  if (!isSame && mapped.length === 0) throw unnamedPortsFault();
  const reached = own.filter((each) => used.some((port) => isBoundAt(port, each)));
  const bytes = reached.flatMap((text) => addressBytes(text) ?? []);
  return {
    reach: isSame ? "machine" : "ports",
    v4: bytes.filter(({ length }) => length === 4),
    v6: bytes.filter(({ length }) => length === 16),
    ports: mapped,
  };
}

function mappedPort(port: ServicePort, bound: readonly BoundPort[]): ServicePort[] {
  const found = bound.find((each) => each.port === `${port.number}/${port.protocol}`);
  return found === undefined ? [] : [{ ...port, number: found.hostPort }];
}

function addressesOf({ ipv4, ipv6 }: EndpointFact): { readonly v4: Uint8Array[]; readonly v6: Uint8Array[] } {
  const of = (text: string | undefined): Uint8Array[] => {
    const bytes = text === undefined || isHostScoped(text) ? undefined : addressBytes(text);
    return bytes === undefined ? [] : [bytes];
  };
  return { v4: of(ipv4), v6: of(ipv6) };
}

function noServiceFault(): Fault {
  return new Fault(NO_SERVICE, "it is in no service", {
    remedy: "Only containers of services are published: give it the labels io.dns11.project and io.dns11.service.",
  });
}

function noPortFault(): Fault {
  return new Fault(
    "PUBLISH_NO_PORT",
    "it has no published port, and no address on a network that other machines reach",
    {
      remedy:
        "Publish its port (-p), or list its network in etcd.routed-networks if other machines have a route to it.",
    },
  );
}

function otherAddressFault(bound: readonly BoundPort[], own: readonly string[]): Fault {
  const at = [...new Set(bound.map(({ address }) => address))].join(", ");
  return new Fault("PUBLISH_OTHER_ADDRESS", `its ports are published at ${at} only, not at ${own.join(", ")}`, {
    remedy: "Publish them on all addresses, or on that of etcd.address.",
  });
}

function noAddressFault(): Fault {
  return new Fault("PUBLISH_NO_ADDRESS", "no address of this machine is known that other machines reach", {
    remedy: "Set etcd.address to one.",
  });
}

function unnamedPortsFault(): Fault {
  return new Fault(
    "PUBLISH_UNNAMED_PORTS",
    "its ports are published under other numbers, and none has a name for SRV",
    {
      remedy: "Name them with the label io.dns11.ports, such as http=8000, or publish them under their own numbers.",
    },
  );
}
