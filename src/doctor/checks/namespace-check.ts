/**
 * Namespace check: what a network namespace needs before rules matter: lo is up, the connection tracking table has room, and
 * the expected sockets listen. Call everything here inside the namespace.
 */
import { type TrackedConversation, trackedConversationsTo } from "../../kernel/conntrack.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { procText } from "../../kernel/process.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { boundPorts, listenersAt } from "../../container/namespace/listeners.ts";
import type { ContainerTarget } from "./container-target.ts";

const DNS_PORT = 53;
/** A table this full overflows at the next burst. A full table still has a free place now and then. */
const NEARLY_FULL_SHARE = 0.9;
const FULL_SHARE = 0.99;
const CONNTRACK = "/proc/sys/net/netfilter/nf_conntrack_";

/** `pid`: the container's process as the engine's host sees it, for the remedy. */
export function loopbackFinding(memory: NetlinkMemory, pid: number): Finding {
  const route = new RouteSocket(memory);
  try {
    const lo = route.links().find(({ isLoopback }) => isLoopback);
    if (lo?.isUp !== true) {
      const detail = `lo is ${lo === undefined ? "missing" : "down"}, so ${DOCKER_RESOLVER} is unreachable`;
      return finding("loopback", "problem", detail, `Run: nsenter -t ${pid} -n ip link set lo up`);
    }
    const own = route.addresses().filter(({ index, address }) => index === lo.index && address.startsWith("127."));
    if (own.length > 0) return finding("loopback", "ok", "up");
    const detail = `lo has no address in 127.0.0.0/8, so ${DOCKER_RESOLVER} is unreachable`;
    return finding("loopback", "problem", detail, `Run: nsenter -t ${pid} -n ip address add 127.0.0.1/8 dev lo`);
  } finally {
    route.close();
  }
}

export function conntrackFinding(): Finding {
  return roomFinding(numberIn(`${CONNTRACK}count`), numberIn(`${CONNTRACK}max`));
}

/** Every redirected query needs an entry in the connection tracking table. */
export function roomFinding(count: number | undefined, max: number | undefined): Finding {
  if (count === undefined || max === undefined) {
    return finding("conntrack", "ok", "not in use");
  }
  const detail = `${count} of ${max} entries`;
  if (count < max * NEARLY_FULL_SHARE) return finding("conntrack", "ok", detail);
  const isFull = count >= max * FULL_SHARE;
  const what = `${detail}: the table is ${isFull ? "full, so" : "nearly full; once it is,"} new connections and DNS queries are dropped`;
  const remedy = `Find the source of the entries with conntrack -L, or raise the limit on the host: sysctl -w net.netfilter.nf_conntrack_max=${2 * max}`;
  return finding("conntrack", isFull ? "problem" : "warning", what, remedy);
}

/** Conntrack entries of connections to Docker's resolver that point at a port where nothing listens any more. */
export function staleTranslations(memory: NetlinkMemory): readonly TrackedConversation[] {
  const ports = new Set(boundPorts(DOCKER_RESOLVER, "udp"));
  return trackedConversationsTo(memory, DOCKER_RESOLVER, DNS_PORT).filter(
    ({ address, port }) => address === DOCKER_RESOLVER && !ports.has(port),
  );
}

export function staleFinding(stale: readonly TrackedConversation[], isAnswered: boolean): Finding {
  if (stale.length === 0) return finding("conntrack-stale", "ok", "none");
  const ports = [...new Set(stale.map(({ port }) => port))].join(", ");
  const detail = `${stale.length} entries redirect clients that reuse their socket to port ${ports} of ${DOCKER_RESOLVER}, where nothing listens`;
  const late = "; they have no effect while dns11 serves the container";
  const remedy = "Run `dns11 doctor --fix` to delete them.";
  return finding("conntrack-stale", isAnswered ? "warning" : "problem", detail + (isAnswered ? late : ""), remedy);
}

/** Queries to Docker's address are redirected, so a process that listens there never receives them. */
export function portFinding(): Finding {
  const protocols = listenersAt(DOCKER_RESOLVER, DNS_PORT);
  if (protocols.length === 0) return finding("port-53", "ok", "no process in the container listens on it");
  const detail = `a process in the container listens on it over ${protocols.join(" and ")}; other containers can query it, but the container's own queries to ${DOCKER_RESOLVER} do not reach it`;
  const remedy =
    "If the container itself is meant to use it, set another address that it listens on in resolv.conf, such as 127.0.0.1.";
  return finding("port-53", "warning", detail, remedy);
}

export function listenerFinding({ served }: ContainerTarget): Finding {
  if (served === undefined) return finding("listener", "ok", "none");
  const missing = (["udp", "tcp"] as const).filter(
    (protocol) => !boundPorts(DOCKER_RESOLVER, protocol).includes(served[protocol]),
  );
  const detail = `udp ${served.udp}, tcp ${served.tcp}`;
  if (missing.length === 0) return finding("listener", "ok", detail);
  const gone = `${detail}, but the ${missing.join(" and ")} socket no longer exists: another program closed it`;
  return finding("listener", "problem", gone, "Run `dns11 doctor --fix` to attach again with new sockets.");
}

function numberIn(path: string): number | undefined {
  try {
    const text = procText(path);
    return text === undefined ? undefined : Number(text);
  } catch {
    return undefined;
  }
}
