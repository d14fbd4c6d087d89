/**
 * In-node facts: the node that dns11 itself runs in, read from its kernel instead of an engine: its addresses and networks, its
 * files, and the sockets of Docker's resolver.
 */
import { openSync } from "node:fs";
import { isIPv6 } from "node:net";
import { hostname } from "node:os";

import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { procText } from "../../kernel/process.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { Fault } from "../../base/lib/fault.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import type { ListenAddress } from "../rules/plan.ts";
import { boundPorts } from "../namespace/listeners.ts";
import type { NodeFact } from "./node-fact.ts";
import type { NodeFiles } from "./node-resolv-conf.ts";

/** There is only one node, so any id will do; the journal requires the form of a container id. */
export const IN_NODE_ID = "0";

/** The names of Docker's interfaces in a container; CNI plugins use others. */
const DOCKER_INTERFACE = /^eth\d+$/;
const START_TIME_FIELD = 21;

export const IN_NODE_FILES: NodeFiles = {
  path: "/etc/resolv.conf",
  openWritten: (flags) => openSync("/etc/resolv.conf", flags),
  openRead: (flags) => openSync("/etc/resolv.conf", flags),
  openOriginal: (flags) => openSync("/etc/resolv.conf.original", flags),
  isContainerFile: () => true,
};

export function readInNodeFact(memory: NetlinkMemory): NodeFact {
  const route = new RouteSocket(memory);
  try {
    const gateways = route.defaultGateways();
    const links = new Map(route.links().map(({ index, name }) => [index, name]));
    const uplinks = new Set(gateways.map(({ index }) => index));
    const own = route
      .addresses()
      .filter(({ index, address }) => isDockerInterface(links.get(index), uplinks.has(index)) && !isLinkLocal(address));
    const addresses = own.map(({ address }) => address);
    const gatewayOf = (family: 4 | 6): string | undefined =>
      gateways.find((each) => each.family === family && !isLinkLocal(each.gateway))?.gateway;
    return {
      containerId: IN_NODE_ID,
      name: hostname(),
      startedAt: nodeStartTime(),
      sandboxKey: "",
      pid: 1,
      resolvConfPath: IN_NODE_FILES.path,
      search: process.env["KIND_DNS_SEARCH"],
      gateway: { ipv4: gatewayOf(4), ipv6: gatewayOf(6) },
      own: {
        ipv4: addresses.find((address) => !isIPv6(address)),
        ipv6: addresses.find((address) => isIPv6(address)),
      },
      addresses,
      joins: own.map(({ index }) => `${index}`),
      hostGateway: undefined,
    };
  } finally {
    route.close();
  }
}

/** The ports of Docker's resolver, from the kernel's socket lists, so that rules need not be read. */
export function dockerResolverSockets(): ListenAddress {
  const [[udpPort], [tcpPort]] = (["udp", "tcp"] as const).map((protocol) => boundPorts(DOCKER_RESOLVER, protocol)) as [
    number[],
    number[],
  ];
  if (udpPort === undefined || tcpPort === undefined) {
    throw new Fault("NO_DOCKER_RESOLVER", `Docker's resolver does not listen on ${DOCKER_RESOLVER} over UDP and TCP`, {
      remedy: "Connect the node to a user-defined network; Docker provides no resolver on its default bridge.",
    });
  }
  return { address: DOCKER_RESOLVER, udpPort, tcpPort };
}

function isDockerInterface(name: string | undefined, isUplink: boolean): boolean {
  return name !== undefined && (isUplink || DOCKER_INTERFACE.test(name));
}

function isLinkLocal(address: string): boolean {
  return /^fe[89ab]/i.test(address) || address.startsWith("169.254.");
}

/** The start time of the container's first process in clock ticks, different for each start of the container. */
function nodeStartTime(): string {
  const stat = procText("/proc/1/stat") ?? "";
  // The command name is in parentheses and may itself contain blanks and parentheses.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[START_TIME_FIELD - 2] ?? "";
}
