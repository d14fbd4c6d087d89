/**
 * Here: the node that we are in ourselves, told by its kernel instead of an engine: its place in the networks, its files,
 * and the sockets of Docker's resolver.
 */
import { openSync } from "node:fs";
import { isIPv6 } from "node:net";
import { hostname } from "node:os";

import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { procText } from "../../kernel/proc-text.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { Fault } from "../../base/lib/fault.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import type { ListenAddress } from "../rules/plan.ts";
import { boundPorts } from "../namespace/listeners.ts";
import type { NodeFact } from "./node-fact.ts";
import type { NodeFiles } from "./node-resolv-conf.ts";

/** There is one node here, so any name serves; the journal wants it to look like a container's id. */
export const IN_NODE_ID = "0";

/** Docker calls the interfaces of a container so; CNIs call theirs otherwise. */
const DOCKER_DEVICE = /^eth\d+$/;
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
    const ways = new Set(gateways.map(({ index }) => index));
    const addresses = route
      .addresses()
      .filter(({ index, address }) => isDockerInterface(links.get(index), ways.has(index)) && !isLinkLocal(address))
      .map(({ address }) => address);
    const gatewayOf = (family: 4 | 6): string | undefined =>
      gateways.find((each) => each.family === family && !isLinkLocal(each.gateway))?.gateway;
    return {
      containerId: IN_NODE_ID,
      name: hostname(),
      startedAt: startOfNode(),
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
      hostGateway: undefined,
    };
  } finally {
    route.close();
  }
}

/** Where Docker's own resolver listens, as the kernel lists its sockets: no rule has to be read for that. */
export function dockerResolverSockets(): ListenAddress {
  const [[udpPort], [tcpPort]] = (["udp", "tcp"] as const).map((protocol) => boundPorts(DOCKER_RESOLVER, protocol)) as [
    number[],
    number[],
  ];
  if (udpPort === undefined || tcpPort === undefined) {
    throw new Fault("NO_DOCKER_RESOLVER", `Nobody listens on ${DOCKER_RESOLVER} here, by UDP and by TCP`, {
      remedy: "Docker gives containers its resolver on networks that users made, not on its default bridge.",
    });
  }
  return { address: DOCKER_RESOLVER, udpPort, tcpPort };
}

function isDockerInterface(name: string | undefined, isWayOut: boolean): boolean {
  return name !== undefined && (isWayOut || DOCKER_DEVICE.test(name));
}

function isLinkLocal(address: string): boolean {
  return /^fe[89ab]/i.test(address) || address.startsWith("169.254.");
}

/** When the container's first process began, in the kernel's clock: another one for each start. */
function startOfNode(): string {
  const stat = procText("/proc/1/stat") ?? "";
  // The command's name stands in brackets, and may hold blanks and brackets itself.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[START_TIME_FIELD - 2] ?? "";
}
