/**
 * ContainerCauses: why the name of a container does not resolve: where the name is known, and what is between it and the
 * client. Containers of the client's own project, or on its networks, come first.
 */
import type { Cause } from "../../api/causes.ts";
import { nearest } from "../../base/lib/nearest.ts";
import { ageText } from "../../base/lib/age.ts";
import { crashCause } from "./crash-loops.ts";
import { commandOf } from "../../base/lib/command-line.ts";
import { serviceChange } from "./fixes.ts";
import type { EndedState, KnownContainer } from "./known-container.ts";
import type { NamePlace } from "./known-containers.ts";
import { lostAliasCauses } from "./lost-aliases.ts";
import { namelessCause } from "./nameless.ts";
import { connectCommand, isDeclared, joinNetwork } from "./reconnect.ts";
import { removedCauses } from "./removed.ts";
import { type Situation, cause } from "./situation.ts";

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
  if (places.length === 0) return removedCauses(situation, own);
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
    return cause("not-running", sentence, {
      about: container.name,
      fix: commandOf("docker", "start", container.name),
      lastingFix: restartFix(container, container.ended),
      isBreaking: true,
    });
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

/** Exit codes of SIGINT, SIGKILL and SIGTERM: it was stopped. */
const STOPPED_CODES = new Set([130, 137, 143]);

/** A service that fails needs a restart policy; one that was stopped needs none. */
function restartFix(container: KnownContainer, { exitCode, state }: EndedState): Cause["lastingFix"] {
  if (state !== "exited" || exitCode === undefined || exitCode === 0 || STOPPED_CODES.has(exitCode)) return null;
  return serviceChange(container, "restart", "set it to unless-stopped");
}

function endedText({ state, exitCode, atMs }: EndedState, nowMs: number): string {
  if (state === "created") return "was created but never started";
  const code = exitCode === undefined || state !== "exited" ? "" : ` with code ${exitCode}`;
  const ago = atMs === undefined ? "" : `, ${ageText(nowMs - atMs)} ago`;
  return state === "exited"
    ? `exited${code}${ago}`
    : `is not running (${state})${atMs === undefined ? "" : `; it ended${ago.slice(1)}`}`;
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
