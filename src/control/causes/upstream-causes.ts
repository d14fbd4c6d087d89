/**
 * UpstreamCauses: why a name of the outside world fails, or what is no container's name: what upstream servers were queried,
 * and in what state they are.
 */
import type { Cause } from "../../api/causes.ts";
import type { HeldName } from "../../base/model/visible-names.ts";
import { serviceChange } from "./fixes.ts";
import { NOT_QUERIED, type RouteState, type Situation, cause, isSingleLabel } from "./situation.ts";
import type { KnownContainer } from "./known-container.ts";

/** The origin of servers that a container has by --dns. */
const OWN_SERVERS = "--dns of the container";
const HOST_FILE = "the host's current resolv.conf";
const SETTING = /^the setting (\S+)/;
const LABEL = /^label (\S+) of the container$/;

const DOCKER_BROKEN_ADVICE =
  "start dockerd again (systemctl restart docker), or update Docker 29.1.0, which answers SERVFAIL for every name outside";

type Change = Pick<Cause, "advice" | "lastingFix">;

/** Results that mean of a single label that no container has it. */
const DENIED: ReadonlySet<string> = new Set(["NXDOMAIN", "NODATA", NOT_QUERIED]);

/** What a result says of a name below a zone of dns11's own. */
const IN_OWN_ZONE: ReadonlyMap<string, string> = new Map([
  ["NXDOMAIN", "and it, or what it points to, does not exist"],
  [
    "SERVFAIL",
    "and it, or what it points to, fails: where its records come from may be away, or names may point to each other",
  ],
]);

export function upstreamCauses(situation: Situation): Cause[] {
  const { name, failure, route, owner, isSpecial, ownZone, held } = situation;
  if (situation.ofFeature !== undefined) return [situation.ofFeature];
  if (held !== undefined) return [cause("not-forwarded", heldText(name, held), { fix: "dns11 doctor" })];
  const isSingle = isSingleLabel(name);
  if (ownZone !== undefined && !situation.isFromUpstream) return zoneCauses(name, failure, ownZone);
  if (isSpecial && !isSingle) return [cause("not-forwarded", `"${name}" is a special name that is never forwarded`)];
  if (isSingle && failure !== undefined && DENIED.has(failure)) {
    return [cause("unknown-name", `no container on this engine has the name "${name}"`)];
  }
  if (failure === undefined || route === undefined) return [];
  const { servers, withheld, missing, isLocal, by, domain } = route;
  // One server is one cause, in however many containers it is set.
  const change = (some: Servers): ReturnType<typeof serverChange> & Pick<Cause, "about"> => ({
    ...serverChange(
      route,
      owner,
      some.map(({ server }) => server),
    ),
    about: listOf(some),
  });
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
  if (servers.every(({ failed }) => failed?.what === "REFUSED")) {
    const sentence = `${listOf(servers)} ${servers.length === 1 ? "refuses" : "refuse"} names such as "${name}" (REFUSED): not for this machine, or not a zone of theirs`;
    return [cause("upstream-refused", sentence, change(servers))];
  }
  // What comes late comes from servers that are not away, whatever a silence has made of them.
  if (servers.every(({ failed }) => failed?.what === "late")) return [lateCause(name, servers, change)];
  const withoutTls = servers.filter(({ tls }) => tls !== undefined);
  if (withoutTls.length > 0 && servers.every(({ tls, isDown }) => tls !== undefined || isDown))
    return withoutTls.slice(0, TLS_CAUSES).flatMap(tlsCause);
  const down = servers.filter(({ isDown }) => isDown);
  if (down.length === servers.length) {
    const reason = down[0]?.reason === undefined ? "" : `: ${down[0].reason}`;
    const which = down.length === 1 ? "the only upstream server is" : `all ${down.length} upstream servers are`;
    return [cause("upstreams-down", `${which} down (${listOf(down)})${reason}`, change(down))];
  }
  const blocked = servers.filter(({ isTcpBlocked }) => isTcpBlocked === true);
  if (blocked.length > 0) {
    const sentence = `${listOf(blocked)} ${blocked.length === 1 ? "answers" : "answer"} over UDP, but not over TCP, which a long answer such as that for "${name}" needs`;
    const advice = `allow TCP port 53 to ${listOf(blocked)} in the firewalls on the way`;
    return [cause("tcp-blocked", sentence, { advice, about: listOf(blocked) })];
  }
  const late = servers.filter(({ failed }) => failed !== undefined && TOO_LATE.has(failed.what));
  if (late.length === servers.length) return [lateCause(name, servers, change)];
  return [cause("upstream-error", `${didText(servers, name)}: its zone may be broken`)];
}

type Servers = RouteState["servers"];

const DOCKER_FAILURES: ReadonlySet<string | undefined> = new Set(["SERVFAIL", "REFUSED"]);

/** The host's servers have answered where Docker's resolver has failed. */
export function dockerCauses({ name, route, server, owner }: Situation): Cause[] {
  const docker = route?.servers.filter(({ isDocker }) => isDocker === true) ?? [];
  const others = route?.servers.filter(({ isBackup }) => isBackup === true) ?? [];
  // An answer of the cache is no sign of how the servers are now.
  if (docker.length === 0 || server === undefined || !others.some((each) => each.server === server)) return [];
  if (!docker.every(({ isDown, failed }) => isDown || DOCKER_FAILURES.has(failed?.what))) return [];
  const did = docker.some(({ isDown }) => isDown) ? "cannot be reached" : `answers ${docker[0]?.failed?.what ?? ""}`;
  const sentence = `Docker's resolver is broken: it ${did} for "${name}" in ${owner.name}, and ${server} has an answer`;
  return [cause("docker-broken", sentence, { advice: DOCKER_BROKEN_ADVICE })];
}

const TOO_LATE: ReadonlySet<string> = new Set(["late", "silent"]);
/** A server that usually takes so long is slow itself. */
const SLOW_MS = 2_000;

/** Of a list of servers by TLS. */
const TLS_CAUSES = 3;

/** It is asked by TLS, and in no other way. */
function tlsCause({ server, tls }: Servers[number]): Cause[] {
  if (tls === undefined) return [];
  const sentence = `${server} cannot be asked by TLS, and is not asked without: ${tls.text}`;
  return [cause(`tls-${tls.kind}`, sentence, { advice: tls.advice, about: server })];
}

const WAIT = "try again, or ask whoever runs the servers of its zone";

function listOf(servers: Servers): string {
  return servers.map(({ server }) => server).join(", ");
}

function lateCause(name: string, servers: Servers, change: (some: Servers) => Parameters<typeof cause>[2]): Cause {
  const tookMs = Math.max(...servers.map(({ failed }) => failed?.tookMs ?? 0));
  const slow = servers.filter(({ leastMs = 0 }) => leastMs > Math.max(SLOW_MS, tookMs / 2));
  const has = servers.length === 1 ? "has" : "have";
  const took = `${(tookMs / 1_000).toFixed(1)} s, when nobody waits any more`;
  const whose = slow.length > 0 ? "so slow are all of the answers" : "the servers of its zone may be slow or away";
  const sentence =
    tookMs === 0
      ? `${listOf(servers)} ${has} not answered for "${name}" in time, but ${servers.length === 1 ? "is" : "are"} up: ${whose}`
      : `${listOf(servers)} answered for "${name}" after ${took}: ${whose}`;
  return cause("upstream-slow", sentence, slow.length === 0 ? { about: listOf(servers), advice: WAIT } : change(slow));
}

/** What each did, as far as it is known. */
function didText(servers: Servers, name: string): string {
  const [first] = servers;
  const what = first?.failed?.what;
  const isOne = servers.every(({ failed }) => failed?.what === what);
  const up = `but ${servers.length === 1 ? "is" : "are"} up`;
  if (isOne) return `${listOf(servers)} ${what === undefined ? "failed" : `answered ${what}`} for "${name}", ${up}`;
  const each = servers.map(
    ({ server, failed }) => `${server} ${DID.get(failed?.what ?? "") ?? failed?.what ?? "failed"}`,
  );
  return `for "${name}", ${each.join(", ")}, ${up}`;
}

const DID: ReadonlyMap<string, string> = new Map([
  ["late", "answered too late"],
  ["silent", "has not answered in time"],
]);

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

function heldText(name: string, { whose, reason }: HeldName): string {
  return `"${name}" may be a name of ${whose}, so it is not forwarded while ${reason}`;
}

/** The name does not exist, upstream or anywhere. */
function notFound({ name, route, server, isDenied }: Situation): Cause[] {
  if (isDenied === true)
    return [cause("does-not-exist", `"${name}" does not exist: dns11 knows that nobody has it, and asks no server`)];
  const servers = (route?.servers ?? []).map((each) => each.server);
  // Of several, one has denied it; from the cache it is not known which.
  if (server !== undefined && servers.length > 1)
    return [cause("does-not-exist", `"${name}" does not exist, according to ${server}`)];
  const list = servers.join(", ") || "none";
  return [cause("does-not-exist", `"${name}" does not exist, according to its upstream servers (${list})`)];
}

/**
 * What to change for another upstream server: the container, a file of the host, or the settings of dns11 or
 * dockerd, depending on where the servers of a name come from.
 *
 * `servers`: those to replace.
 */
function serverChange(
  { by = "", places = [], settingsFile }: Pick<RouteState, "by" | "places" | "settingsFile">,
  owner: KnownContainer,
  servers: readonly string[],
): Partial<Change> {
  const list = servers.join(", ");
  if (by === OWN_SERVERS) {
    const lastingFix = serviceChange(owner, "dns", `replace or remove ${list}`);
    return lastingFix === null
      ? { advice: `create ${owner.name} again with another --dns: Docker cannot change that of a container` }
      : { lastingFix };
  }
  const [, label] = LABEL.exec(by) ?? [];
  if (label !== undefined) {
    const lastingFix = serviceChange(owner, "labels", `change ${label}: replace ${list}`);
    return lastingFix === null ? { advice: `create ${owner.name} again with another label ${label}` } : { lastingFix };
  }
  const [, setting] = SETTING.exec(by) ?? [];
  if (setting !== undefined) {
    const where =
      settingsFile === undefined
        ? `--${setting} of dns11 run, and start it again`
        : `${settingsFile}, then run: dns11 reload`;
    return { advice: `replace ${list} in "${setting}" in ${where}` };
  }
  if (by === HOST_FILE) {
    const found = places.filter(({ server }) => servers.includes(server));
    if (found.length === 0) return { advice: `replace ${list} in /etc/resolv.conf of the Docker host` };
    const where = found.map(({ server, file, line }) => `${server} in line ${line} of ${file}`);
    return { advice: `on the Docker host, replace ${where.join(", ")}: dns11 reads the file again at once` };
  }
  return { advice: `replace ${list} in "dns" of dockerd (daemon.json or --dns), and start dockerd again` };
}
