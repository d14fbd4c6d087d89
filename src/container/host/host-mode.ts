/**
 * HostMode: how the host's own namespace is served by capture. Only queries for names of ours are redirected, whichever server of
 * /etc/resolv.conf they are sent to; all others leave as they always did, and no failure of dns11 can affect them.
 */
import { Fault } from "../../base/lib/fault.ts";
import { isIPv6 } from "node:net";

import { PROBE_SUFFIX } from "../../base/model/probe-message.ts";
import type { AttachMode } from "../attach/attach-mode.ts";
import { type Capture, type ControlGroup, DOCKER_RESOLVER, type Redirect } from "../capture/capture.ts";
import { reverseZones, wireName } from "./reverse-zones.ts";
import type { Subnet } from "./host-subnets.ts";
import { HOST_LIMITS } from "./limits.ts";

/** What a program asks where resolv.conf names no server. */
const DEFAULT_SERVER = "127.0.0.1";
const IPV6_LISTENER = "::1";

export interface HostModeParts {
  /** Names below these domains resolve. */
  readonly domains: () => readonly string[];
  /** The servers of the host's resolv.conf. */
  readonly servers: () => readonly string[];
  /** The subnets of reachable containers. */
  readonly subnets: () => Iterable<Subnet>;
  /** Called inside the namespace: those whose queries pass by. Throws a Fault if they cannot be told apart. */
  readonly spared: () => readonly ControlGroup[];
}

export function hostMode(parts: HostModeParts): AttachMode {
  return {
    capture: () => hostCapture(parts),
    onVerified: () => Promise.resolve(),
    withdraw: () => undefined,
  };
}

function hostCapture({ domains, servers, subnets, spared }: HostModeParts): Capture {
  const redirects = redirectsOf(servers());
  if (redirects.length === 0) {
    throw new Fault("HOST_NO_SERVER", "The host's resolv.conf has only link-local servers, which cannot be captured", {
      remedy: "List a server there that has an address of its own.",
    });
  }
  const names = [...domains(), PROBE_SUFFIX].map(wireName);
  const host = { names, reverseNames: reverseZones(subnets()), spared: spared() };
  return { redirects, bypassInterfaces: [], guardsLoopback: false, guardsPorts: true, host };
}

/** A link-local server belongs to one interface, and a translated packet would leave by none. */
function redirectsOf(listed: readonly string[]): Redirect[] {
  const all = [...new Set(listed.length === 0 ? [DEFAULT_SERVER] : listed)].filter((each) => !each.includes("%"));
  const servers = all.slice(0, HOST_LIMITS.servers);
  const [v6, v4] = [servers.filter((each) => isIPv6(each)), servers.filter((each) => !isIPv6(each))];
  return [
    ...(v4.length === 0 ? [] : [{ bind: DOCKER_RESOLVER, fromInside: v4, fromPods: [] }]),
    ...(v6.length === 0 ? [] : [{ bind: IPV6_LISTENER, fromInside: v6, fromPods: [] }]),
  ];
}
