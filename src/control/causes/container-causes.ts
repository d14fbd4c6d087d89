/**
 * ContainerCauses: why the name of a container does not resolve: where the name is known, and what is between it and the
 * client. Containers of the client's own project, or on its networks, come first.
 */
import type { Cause } from "../../api/causes.ts";
import { nearest } from "../../base/lib/nearest.ts";
import { commandOf } from "../../base/lib/text.ts";
import { sharedWith } from "../../container/facts/fact.ts";
import type { FormerAddress } from "../../container/registry/former-addresses.ts";
import { bareName } from "../../base/dns/name.ts";
import { ageText } from "../../base/lib/quantity.ts";
import { crashCause, endedCause, endedText } from "./client-causes.ts";
import { connectCommand, isDeclared, joinNetwork, recreateCommand, serviceChange, upCommand } from "./fixes.ts";
import type { KnownContainer, KnownContainers, NamePlace } from "./known-container.ts";
import { lostAliasCauses } from "./lost-aliases.ts";
import { type Move, type Situation, cause } from "./situation.ts";

interface Mode {
  readonly why: string;
  readonly isConnectable: boolean;
  readonly advice?: string;
}

const CAUSES_PER_NAME_MAX = 5;
/** Names on the client's networks that are compared with a mistyped one. */
const NEIGHBOURS_MAX = 512;
/** Nobody means to type one. */
const SHORT_ID = /^[0-9a-f]{12}$/;

/** The places of a name where the client does not find it. */
export function containerCauses(situation: Situation): Cause[] {
  const { known, name, owner } = situation;
  const own = networksOf(owner);
  const places = known.places(name.toLowerCase());
  const reachable = places.filter(
    (place) => isRunning(place) && place.endpoints.some((each) => own.has(each.networkName)),
  );
  if (reachable.length > 0) return resolvingCauses(situation, reachable, own);
  const lost = lostAliasCauses(situation);
  if (lost.length > 0) return lost;
  if (places.length === 0) {
    const notCreated = notCreatedCauses(situation);
    // The command that makes it again says what the file keeps it from.
    return notCreated.some(({ lastingFix }) => lastingFix !== null)
      ? notCreated
      : [...renamedCauses(situation, own), ...removedCauses(situation, own), ...notCreated].slice(0, 1);
  }
  const ranked = places
    .map((place) => ({ place, rank: rankOf(place, situation, own) }))
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, CAUSES_PER_NAME_MAX);
  return ranked.map(({ place }) => placeCause(situation, place));
}

/** A name on the client's networks that differs in a letter or two. */
export function similarCauses({ known, name, owner, typeName }: Situation): Cause[] {
  if (typeName === "PTR") return [];
  const own = networksOf(owner);
  const names = new Set<string>();
  for (const { endpoints, ended } of known.all) {
    if (ended !== undefined || names.size > NEIGHBOURS_MAX) continue;
    for (const each of endpoints)
      if (own.has(each.networkName)) for (const other of each.names) if (!SHORT_ID.test(other)) names.add(other);
  }
  const [first = ""] = name.toLowerCase().split(".");
  if (names.has(name.toLowerCase()) || names.has(first)) return [];
  const similar = nearest(name.toLowerCase(), [...names]);
  if (similar === undefined) return [];
  const isOwn = owner.endpoints.some((each) => each.names.includes(similar));
  const place = isOwn
    ? `is "${similar}", which is ${owner.name} itself`
    : `is "${similar}" on the networks of ${owner.name}`;
  const sentence = `no container has the name "${name}", but there ${place}`;
  const advice = `change the name to "${similar}" where ${owner.name} is given it: its environment, arguments or settings`;
  return [cause("similar-name", sentence, { advice, isBreaking: true })];
}

/** Containers with the name that resolve it but do not respond. */
export function pausedCauses({ known, name, owner }: Situation): Cause[] {
  const own = networksOf(owner);
  return known
    .places(name.toLowerCase())
    .filter(({ container, endpoints }) => container.isPaused && endpoints.some((each) => own.has(each.networkName)))
    .map(({ container }) => pausedCause(container));
}

/** Containers with the name that resolve it until they end again. */
export function crashCauses({ known, name, owner, nowMs }: Situation): Cause[] {
  const own = networksOf(owner);
  return known
    .places(name.toLowerCase())
    .filter(({ endpoints }) => endpoints.some((each) => own.has(each.networkName)))
    .flatMap(({ container }) => (container.ended === undefined ? (crashCause(name, container, nowMs) ?? []) : []));
}

export function pausedCause({ name }: KnownContainer): Cause {
  return cause("paused", `container ${name} is paused: its name resolves, but it does not respond`, {
    fix: commandOf("docker", "unpause", name),
    isBreaking: true,
  });
}

/** Containers of several projects that share a name on a network of the client. */
export function ambiguousCauses({ known, name, owner, prefersOwnProject }: Situation): Cause[] {
  const own = networksOf(owner);
  const isOwn = ({ compose }: KnownContainer): boolean => compose?.project === owner.compose?.project;
  const places = known.places(name.toLowerCase()).filter((place) => isRunning(place));
  return [...own].flatMap((network) => {
    const owners = places
      .filter(({ endpoints }) => endpoints.some(({ networkName }) => networkName === network))
      .map(({ container }) => container);
    // It has got those of its own project.
    if (prefersOwnProject && owner.compose !== undefined && owners.some(isOwn)) return [];
    return ambiguity(name.toLowerCase(), network, owners, prefersOwnProject) ?? [];
  });
}

/**
 * The cause if a name on a network belongs to services of several projects; undefined if it does not. A name that is not
 * that of a service has been shared on purpose.
 */
export function ambiguity(
  name: string,
  network: string,
  owners: readonly KnownContainer[],
  prefersOwnProject: boolean,
): Cause | undefined {
  const services = owners.filter(({ compose }) => compose?.service.toLowerCase() === name.split(".", 1)[0]);
  const projects = new Set(services.map(({ compose }) => compose?.project));
  if (projects.size < 2) return undefined;
  const list = services.map(({ name: container, compose }) => `${container} (project ${compose?.project ?? ""})`);
  const guest = services.findLast(({ compose }) => !network.startsWith(`${compose?.project ?? ""}_`));
  const what = prefersOwnProject
    ? "each project gets its own, and for other containers answers alternate"
    : "answers alternate";
  const sentence = `"${name}" is ${projects.size} services on network ${network}: ${list.join(", ")}; ${what}`;
  return cause("ambiguous", sentence, {
    isBreaking: true,
    fix: guest === undefined ? null : commandOf("docker", "network", "disconnect", network, guest.name),
    lastingFix:
      guest === undefined
        ? null
        : serviceChange(guest, `networks.${network}`, "remove it, or rename the service: its name is an alias there"),
  });
}

/** A name that fails but would resolve: for another type of address, or by now. */
function resolvingCauses(situation: Situation, places: readonly NamePlace[], own: Set<string>): Cause[] {
  const { name, failure, typeName } = situation;
  const endpoints = places.flatMap((place) => place.endpoints).filter(({ networkName }) => own.has(networkName));
  const owners = places.map(({ container }) => container.name).join(", ");
  if (failure === "NODATA" && typeName === "A" && endpoints.every(({ ipv4 }) => ipv4 === undefined)) {
    return [noIpv4Cause(situation, places, owners)];
  }
  const crashing = places.flatMap(({ container }) => crashCause(name, container, situation.nowMs) ?? []);
  if (crashing.length > 0) return crashing.slice(0, CAUSES_PER_NAME_MAX);
  const networks = [...new Set(endpoints.map(({ networkName }) => networkName))].join(", ");
  return [cause("resolves-now", `"${name}" resolves now: it is container ${owners} on network ${networks}`)];
}

/** A network of the client with IPv4 is one that the container can be connected to. */
function noIpv4Cause({ name, owner, ...known }: Situation, [place]: readonly NamePlace[], owners: string): Cause {
  const sentence = `"${name}" is container ${owners}, which has an IPv6 address only`;
  const shared = owner.endpoints.find(
    ({ ipv4, networkName }) =>
      ipv4 !== undefined && !place?.container.endpoints.some((each) => each.networkName === networkName),
  );
  if (place === undefined || shared === undefined) {
    const networks = place?.endpoints.map(({ networkName }) => networkName).join(", ") ?? "";
    const advice = `query type AAAA, or create network ${networks} again with IPv4`;
    return cause("no-ipv4", sentence, { advice });
  }
  return cause("no-ipv4", sentence, {
    fix: connectCommand(place.container, shared.networkName, known),
    lastingFix: joinNetwork(place.container, shared.networkName, known),
  });
}

function placeCause(situation: Situation, { container, endpoints }: NamePlace): Cause {
  const { name, owner, nowMs } = situation;
  const networks = endpoints.map(({ networkName }) => networkName);
  const crashing = crashCause(name, container, nowMs);
  if (crashing !== undefined) return crashing;
  if (container.ended !== undefined) {
    const on = networks.length === 0 ? "" : ` (network ${networks.join(", ")})`;
    const sentence = `"${name}" is container ${container.name}, which ${endedText(container.ended, nowMs)}${on}`;
    return endedCause(container, container.ended, sentence);
  }
  if (networks.length === 0) return namelessCause(situation, container);
  // One that the client has left, before others that it was never on.
  const network = networks.find((each) => isDeclared(owner, each, situation)) ?? networks[0] ?? "";
  const isElsewhere =
    owner.compose !== undefined &&
    container.compose !== undefined &&
    owner.compose.project !== container.compose.project;
  const project = isElsewhere ? ` (project ${container.compose?.project ?? ""})` : "";
  const sentence = `"${name}" is container ${container.name}${project} on network ${networks.join(", ")}; ${owner.name} is not on ${network}`;
  return cause(isElsewhere ? "other-project" : "other-network", sentence, {
    about: network,
    fix: connectCommand(owner, network, situation),
    lastingFix: joinNetwork(owner, network, situation),
    isBreaking: true,
  });
}

/** Related containers first, then running ones. */
function rankOf({ container, endpoints }: NamePlace, { owner }: Situation, own: Set<string>): number {
  const isSameProject = owner.compose !== undefined && container.compose?.project === owner.compose.project;
  const isRelated = isSameProject || endpoints.some(({ networkName }) => own.has(networkName));
  return (isRelated ? 0 : 2) + (container.ended === undefined ? 0 : 1);
}

function isRunning({ container }: NamePlace): boolean {
  return container.ended === undefined;
}

function networksOf({ endpoints }: KnownContainer): Set<string> {
  return new Set(endpoints.map(({ networkName }) => networkName));
}

/**
 * A container that is on no network with names, so that no name leads to it. Docker connects it to one only if it has an
 * interface of its own that is not the host's; any other has to be created again.
 *
 * The name is that of a running container without such a network, or of its service.
 */
function namelessCause(situation: Situation, container: KnownContainer): Cause {
  const { name, owner } = situation;
  const { why, isConnectable, advice } = modeOf(container, situation);
  const network = networkFor(owner);
  const lastingFix = lastingChange(container, network);
  const byHand = network === undefined ? undefined : `create ${container.name} again on network ${network}`;
  const words = advice ?? (lastingFix === null ? byHand : undefined);
  return cause("no-dns-name", `"${name}" is container ${container.name}, which has no DNS name, because ${why}`, {
    fix: isConnectable && network !== undefined ? connectCommand(container, network, situation) : null,
    ...(!isConnectable && words !== undefined && { advice: words }),
    lastingFix,
    isBreaking: true,
  });
}

function modeOf({ networkMode = "", isOnDefaultBridge }: KnownContainer, { owner, known }: Situation): Mode {
  if (networkMode === "host") return { why: "it uses the network of the host", isConnectable: false };
  if (networkMode === "none") return { why: "it has no network (network mode none)", isConnectable: false };
  const owned = sharedWith(networkMode);
  if (owned !== undefined) {
    const other = known.byId(owned);
    if (other === undefined) return { why: "it uses the network of another container", isConnectable: false };
    const service = other.compose?.service ?? other.name;
    const advice = `change the name to "${service}" where ${owner.name} is given it: its environment, arguments or settings`;
    return { why: `it uses the network of ${other.name}`, isConnectable: false, advice };
  }
  const hint =
    owner.isOnDefaultBridge && isOnDefaultBridge
      ? "; with the setting default-bridge: names, containers there resolve each other"
      : "";
  return { why: `it is on no user-defined network${hint}`, isConnectable: true };
}

/** A network of the client's own project, if it has one. */
function networkFor({ endpoints, compose }: KnownContainer): string | undefined {
  const own = endpoints.find(({ networkName }) => networkName.startsWith(`${compose?.project ?? ""}_`));
  return (own ?? endpoints[0])?.networkName;
}

/** Compose sets a network mode only where the file has one; without one, it may have been disconnected. */
function lastingChange(container: KnownContainer, network: string | undefined): Cause["lastingFix"] {
  const { compose, networkMode = "" } = container;
  if (compose === undefined) return null;
  const own = `${compose.project}_`;
  if (networkMode.startsWith(own))
    return serviceChange(container, "networks", "it is right: create the container again", recreateCommand(container));
  const key = network?.startsWith(own) === true ? network.slice(own.length) : "default";
  const change =
    key === "default"
      ? "remove it: the service is then on the project's network"
      : `replace it by "networks: [${key}]"`;
  return serviceChange(container, "network_mode", change);
}

/**
 * A name of which there is no container. Nothing of a removed one is left on the engine, so only what dns11 has seen of it tells
 * what the name was; of one that was never made, only the Compose file.
 *
 * The name is that of a service of the client's project, of which there is no container.
 */
function notCreatedCauses({ known, name, owner }: Situation): Cause[] {
  const { compose } = owner;
  const bare = bareName(name);
  const services = owner.project?.()?.services;
  if (compose === undefined || services === undefined || bare.includes(".")) return [];
  const service = [...services.keys()].find((each) => each.toLowerCase() === bare);
  const text = service === undefined ? undefined : services.get(service);
  if (service === undefined || text === undefined) return [];
  if (known.ofService(bare).some((each) => each.compose?.project === compose.project)) return [];
  const { profiles, replicas } = text;
  const place = { compose: { ...compose, service }, project: owner.project };
  const what = `"${name}" is service ${service} of project ${compose.project}`;
  const parts = { about: service, isBreaking: true };
  if (replicas?.count === 0) {
    const sentence = `${what}, of which no container is to run: its file has ${replicas.key}: 0`;
    const fix = upCommand(place, "--scale", `${service}=1`) ?? null;
    return [
      cause("not-created", sentence, { ...parts, fix, lastingFix: serviceChange(place, replicas.key, "set it to 1") }),
    ];
  }
  const fix = upCommand(place) ?? null;
  if (profiles.length === 0)
    return [cause("not-created", `${what}, of which no container was made`, { ...parts, fix })];
  const which = `${profiles.length === 1 ? "profile" : "profiles"} ${profiles.join(", ")}`;
  const sentence = `${what}, which has the ${which} and was not started: "docker compose up" leaves it out without that`;
  return [cause("not-created", sentence, { ...parts, fix })];
}

function removedCauses({ former = [], known, name, owner }: Situation, own: ReadonlySet<string>): Cause[] {
  const bare = bareName(name);
  const gone = former.filter(
    ({ containerId, names, networkName }) =>
      known.byId(containerId) === undefined &&
      (names.includes(bare) || names.some((each) => `${each}.${networkName.toLowerCase()}` === bare)),
  );
  const last = gone.findLast(({ networkName }) => own.has(networkName)) ?? gone.at(-1);
  if (last === undefined) return [];
  const { container, networkName, atMs } = last;
  const sentence = `"${name}" was container ${container}, which was removed ${ageText(performance.now() - atMs)} ago (network ${networkName})`;
  const fix = upCommand(last) ?? null;
  const advice = fix === null ? { advice: `run ${container} again on a network of ${owner.name}` } : {};
  return [cause("removed", sentence, { fix, ...advice, isBreaking: true })];
}

/**
 * A container that had the name until somebody renamed it. It may have any name now, so nothing that resembles the old one is
 * what is meant.
 *
 * Only where the name would resolve again: on a network of the client.
 */
function renamedCauses({ formerNames = [], known, name, owner }: Situation, own: ReadonlySet<string>): Cause[] {
  const bare = bareName(name);
  const found = formerNames.findLast(({ containerId, name: former }) => {
    const lowered = former.toLowerCase();
    return known
      .byId(containerId)
      ?.endpoints.some(
        ({ networkName: network }) =>
          own.has(network) && (bare === lowered || bare === `${lowered}.${network.toLowerCase()}`),
      );
  });
  const container = found === undefined ? undefined : known.byId(found.containerId);
  if (found === undefined || container === undefined || container.ended !== undefined) return [];
  const sentence = `"${name}" is container ${container.name} now: it was renamed ${ageText(performance.now() - found.atMs)} ago`;
  return [
    cause("renamed", sentence, {
      about: container.name,
      fix: commandOf("docker", "rename", container.name, found.name),
      advice: `if the new name is meant, give ${owner.name} "${container.name}" instead`,
      isBreaking: true,
    }),
  ];
}

/**
 * Containers that have another address than a while ago. Who resolved the name before and not since may still use the
 * old address.
 * A container that was created again under its name has moved, too.
 */
export function movesOf(former: readonly FormerAddress[], known: KnownContainers): Move[] {
  return former.flatMap(({ container, networkName, address: from, atMs }) => {
    const isSix = from.includes(":");
    const owner = known
      .places(container.toLowerCase())
      .find((place) => place.container.name === container && place.container.ended === undefined)?.container;
    const endpoint = owner?.endpoints.find((each) => each.networkName === networkName);
    const to = isSix ? endpoint?.ipv6 : endpoint?.ipv4;
    if (owner === undefined || endpoint === undefined || to === undefined || to === from) return [];
    return [{ containerId: owner.id, container, networkName, names: endpoint.names, from, to, atMs }];
  });
}

/** `clients`: containers that resolved the name before the move and not since. */
export function moveCause(name: string, move: Move, clients: readonly string[], agoMs: number): Cause {
  const { container, from, to } = move;
  const others = clients.join(", ");
  const sentence =
    `"${name}" moved from ${from} to ${to} ${ageText(agoMs)} ago (container ${container}), and ${others} ` +
    `${clients.length === 1 ? "has" : "have"} not queried it since: programs that keep addresses still connect to ${from}`;
  return cause("moved", sentence, { about: container, fix: commandOf("docker", "restart", ...clients) });
}
