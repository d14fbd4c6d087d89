/**
 * UpstreamCauses: why a name of the outside world fails, or what is no container's name: what upstream servers were queried,
 * and in what state they are.
 */
import { bareName } from "../../base/dns/name.ts";
import type { Cause } from "../../api/causes.ts";
import type { SwarmPlace } from "../../base/model/swarm-place.ts";
import { commandOf } from "../../base/lib/command-line.ts";
import { serviceChange } from "./fixes.ts";
import { NOT_QUERIED, type Situation, cause } from "./situation.ts";
import { serverChange } from "./upstream-fixes.ts";

/** Results that mean of a single label that no container has it. */
const DENIED: ReadonlySet<string> = new Set(["NXDOMAIN", "NODATA", NOT_QUERIED]);

/** What a result says of a name below a zone of dns11's own. */
const IN_OWN_ZONE: ReadonlyMap<string, string> = new Map([
  ["NXDOMAIN", "and it, or what it points to, does not exist"],
  ["SERVFAIL", "and it, or what it points to, fails: etcd may be away, or names may point to each other"],
]);

export function upstreamCauses(situation: Situation): Cause[] {
  const { name, failure, route, owner, isSpecial, ownZone, swarmService, swarmAlone, held } = situation;
  if (swarmService?.tasks === 0) return [taskCause(swarmService)];
  if (failure === "NXDOMAIN" && swarmService !== undefined && isSlotOf(name, swarmService)) {
    return [slotCause(name, swarmService)];
  }
  if (held !== undefined) return [cause("not-forwarded", heldText(name, held), { fix: "dns11 doctor" })];
  if (route?.isRefused === true) {
    const advice = "set forward: true there if these machines may use the host's servers";
    return [
      cause("not-forwarded", `nothing is forwarded for ${owner.name}, which the setting listen names`, { advice }),
    ];
  }
  const isSingle = !name.replace(/\.$/, "").includes(".");
  if (ownZone !== undefined && !situation.isFromUpstream) return zoneCauses(name, failure, ownZone);
  if (isSpecial && !isSingle) return [cause("not-forwarded", `"${name}" is a special name that is never forwarded`)];
  if (swarmAlone !== undefined && mayBeSwarms(name, swarmAlone.network)) return [aloneCause(name, swarmAlone)];
  if (isSingle && failure !== undefined && DENIED.has(failure)) {
    return [cause("unknown-name", `no container on this engine has the name "${name}"`)];
  }
  if (failure === undefined || route === undefined) return [];
  const { servers, withheld, missing, isLocal, by, domain } = route;
  const change = (some: readonly { readonly server: string }[]): ReturnType<typeof serverChange> =>
    serverChange(
      route,
      owner,
      some.map(({ server }) => server),
    );
  if (isLocal) {
    const source = by === undefined ? "" : ` (${by})`;
    return [cause("not-forwarded", `names in "${domain}" are never forwarded${source}`)];
  }
  if (failure === "NXDOMAIN") return notFound(situation);
  if (failure !== "SERVFAIL" && failure !== "REFUSED") return [];
  if (servers.length === 0 && withheld.length > 0) {
    const sentence = `${owner.name} is on internal networks only, so ${withheld.join(", ")} ${withheld.length === 1 ? "is" : "are"} not queried for it`;
    const lastingFix = serviceChange(owner, "networks", "add one that is not internal, if it may reach the outside");
    const advice = `connect ${owner.name} to a network that is not internal, if it may reach the outside`;
    return [cause("internal-network", sentence, lastingFix === null ? { advice } : { lastingFix })];
  }
  if (servers.length === 0 && missing.length > 0) {
    return [cause("no-upstream", `there is no upstream server for "${name}": ${missing.join("; ")}`)];
  }
  if (servers.length === 0) {
    const advice = "add a nameserver to the Docker host's resolv.conf, or run dns11 with --dns";
    return [cause("no-upstream", `there is no upstream server for "${name}"`, { advice })];
  }
  const down = servers.filter(({ isDown }) => isDown);
  const list = (some: typeof servers): string => some.map(({ server }) => server).join(", ");
  if (down.length === servers.length) {
    const reason = down[0]?.reason === undefined ? "" : `: ${down[0].reason}`;
    const which = down.length === 1 ? "the only upstream server is" : `all ${down.length} upstream servers are`;
    return [cause("upstreams-down", `${which} down (${list(down)})${reason}`, change(down))];
  }
  const blocked = servers.filter(({ isTcpBlocked }) => isTcpBlocked === true);
  if (blocked.length > 0) {
    const sentence = `${list(blocked)} ${blocked.length === 1 ? "answers" : "answer"} over UDP, but not over TCP, which a long answer such as that for "${name}" needs`;
    const advice = `allow TCP port 53 to ${list(blocked)} in the firewalls on the way`;
    return [cause("tcp-blocked", sentence, { advice })];
  }
  return [
    cause(
      "upstream-error",
      `${list(servers)} failed for "${name}", but ${servers.length === 1 ? "is" : "are"} up: its zone may be broken`,
    ),
  ];
}

/** Upstream servers have no part in it. */
function zoneCauses(
  name: string,
  failure: string | undefined,
  { zone, source }: NonNullable<Situation["ownZone"]>,
): Cause[] {
  const what = failure === undefined ? undefined : IN_OWN_ZONE.get(failure);
  if (what === undefined) return [];
  const sentence = `"${name}" is below "${zone}", which has ${source} only, ${what}`;
  return [cause("not-forwarded", sentence, { fix: "dns11 doctor" })];
}

function taskCause({ service, network }: SwarmPlace): Cause {
  const sentence = `the swarm service "${service ?? ""}" has no running, healthy task on ${network}, so it has no name`;
  return cause("no-healthy-task", sentence, {
    fix: commandOf("docker", "service", "ps", service ?? ""),
    isBreaking: true,
  });
}

function isSlotOf(name: string, { name: service }: SwarmPlace): boolean {
  const [own, after] = [name.toLowerCase(), `${service.toLowerCase()}.`];
  return own.startsWith(after) && /^(?:\d+|[a-z0-9]{25})(?:\.|$)/.test(own.slice(after.length));
}

function slotCause(name: string, { service, network }: SwarmPlace): Cause {
  const sentence = `the swarm service "${service ?? ""}" has no running, healthy task on ${network} that "${name}" names`;
  return cause("no-healthy-task", sentence, { fix: commandOf("docker", "service", "ps", service ?? "") });
}

function heldText(name: string, reason: string): string {
  return `"${name}" may be a name of the swarm, so it is not forwarded while ${reason}`;
}

/** A single label, `tasks.NAME`, or either on the network. */
function mayBeSwarms(name: string, network: string): boolean {
  const bare = bareName(name);
  const suffix = `.${network.toLowerCase()}`;
  const inside = bare.endsWith(suffix) ? bare.slice(0, -suffix.length) : bare;
  return !inside.replace(/^tasks\./, "").includes(".");
}

function aloneCause(name: string, { network, forMs }: NonNullable<Situation["swarmAlone"]>): Cause {
  const sentence = `"${name}" may run on another machine, but gossip has brought none on ${network} for ${Math.round(forMs / 1000)} seconds`;
  return cause("swarm-alone", sentence, { fix: "dns11 doctor" });
}

/** The name does not exist, upstream or anywhere. */
function notFound({ name, route, isDenied }: Situation): Cause[] {
  if (isDenied === true)
    return [cause("does-not-exist", `"${name}" does not exist: dns11 knows that nobody has it, and asks no server`)];
  const servers = (route?.servers ?? []).map(({ server }) => server).join(", ");
  return [
    cause("does-not-exist", `"${name}" does not exist, according to its upstream servers (${servers || "none"})`),
  ];
}
