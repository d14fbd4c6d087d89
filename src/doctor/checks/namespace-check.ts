/**
 * Namespace check: what has to be as it is in a network namespace before any rule matters: lo is up, connection tracking
 * has room, and whoever is to listen does. Everything here is called inside the namespace.
 */
import { type TrackedConversation, trackedConversationsTo } from "../../kernel/conntrack.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { procText } from "../../kernel/proc-text.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { boundPorts, listenersAt } from "../../container/namespace/listeners.ts";
import type { ContainerTarget } from "./container-target.ts";

const DNS_PORT = 53;
/** A table that is so full is full at the next burst; and one that is full has a place free now and then. */
const NEARLY_FULL_SHARE = 0.9;
const FULL_SHARE = 0.99;
const CONNTRACK = "/proc/sys/net/netfilter/nf_conntrack_";

export function loopbackFinding(memory: NetlinkMemory): Finding {
  const route = new RouteSocket(memory);
  try {
    const lo = route.links().find(({ isLoopback }) => isLoopback);
    if (lo?.isUp !== true) {
      const detail = `it is ${lo === undefined ? "not there" : "down"}: nothing at ${DOCKER_RESOLVER} can be reached`;
      return finding("loopback", "problem", detail, "Set it up in the container's namespace: ip link set lo up");
    }
    const own = route.addresses().filter(({ index, address }) => index === lo.index && address.startsWith("127."));
    if (own.length > 0) return finding("loopback", "ok", "up");
    const detail = `it has no address in 127.0.0.0/8: nothing at ${DOCKER_RESOLVER} can be reached`;
    return finding("loopback", "problem", detail, "Give it one: ip address add 127.0.0.1/8 dev lo");
  } finally {
    route.close();
  }
}

/** How full the table is that every translated query needs a place in. */
export function conntrackFinding(): Finding {
  const count = numberIn(`${CONNTRACK}count`);
  const max = numberIn(`${CONNTRACK}max`);
  if (count === undefined || max === undefined) {
    return finding("conntrack", "ok", "nothing is tracked here");
  }
  const detail = `${count} of ${max} entries`;
  if (count < max * NEARLY_FULL_SHARE) return finding("conntrack", "ok", detail);
  const isFull = count >= max * FULL_SHARE;
  const what = `${detail}: ${isFull ? "new conversations are dropped" : "it is nearly full"}, queries among them`;
  const remedy = "Find who opens so many (conntrack -L), or raise net.netfilter.nf_conntrack_max on the machine.";
  return finding("conntrack", isFull ? "problem" : "warning", what, remedy);
}

/** What the kernel remembers of conversations with Docker's resolver that nobody is at the end of any more. */
export function staleTranslations(memory: NetlinkMemory): readonly TrackedConversation[] {
  const ports = new Set(boundPorts(DOCKER_RESOLVER, "udp"));
  return trackedConversationsTo(memory, DOCKER_RESOLVER, DNS_PORT).filter(
    ({ address, port }) => address === DOCKER_RESOLVER && !ports.has(port),
  );
}

export function staleFinding(stale: readonly TrackedConversation[], isAnswered: boolean): Finding {
  if (stale.length === 0) return finding("conntrack-stale", "ok", "none");
  const ports = [...new Set(stale.map(({ port }) => port))].join(", ");
  const detail = `${stale.length} entries lead clients that keep their socket to port ${ports} of ${DOCKER_RESOLVER}, where nobody listens`;
  const late = "; they do not count as long as dns11 answers";
  const remedy = "`dns11 doctor --fix` has the kernel forget them.";
  return finding("conntrack-stale", isAnswered ? "warning" : "problem", detail + (isAnswered ? late : ""), remedy);
}

/** Queries to Docker's address are led elsewhere, so whoever listens there waits in vain. */
export function portFinding(): Finding {
  const protocols = listenersAt(DOCKER_RESOLVER, DNS_PORT);
  if (protocols.length === 0) return finding("port-53", "ok", "nobody in the container listens there");
  const detail = `somebody in the container listens there by ${protocols.join(" and ")}: others can ask it, but what the container itself asks at ${DOCKER_RESOLVER} does not come to it`;
  const remedy =
    "If it is meant for this container, let its resolv.conf name another address that it listens on, such as 127.0.0.1.";
  return finding("port-53", "warning", detail, remedy);
}

export function listenerFinding({ served }: ContainerTarget): Finding {
  if (served === undefined) return finding("listener", "ok", "none here");
  const missing = (["udp", "tcp"] as const).filter(
    (protocol) => !boundPorts(DOCKER_RESOLVER, protocol).includes(served[protocol]),
  );
  const detail = `udp ${served.udp}, tcp ${served.tcp}`;
  if (missing.length === 0) return finding("listener", "ok", detail);
  const gone = `${detail}, but the kernel has none for ${missing.join(" and ")}: somebody closed it`;
  return finding("listener", "problem", gone, "`dns11 doctor --fix` has dns11 attach anew.");
}

function numberIn(path: string): number | undefined {
  try {
    const text = procText(path);
    return text === undefined ? undefined : Number(text);
  } catch {
    return undefined;
  }
}
