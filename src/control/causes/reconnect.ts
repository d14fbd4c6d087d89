/**
 * Reconnect: how a container comes back to a network with the names that Compose gives it there. They follow from labels,
 * from the other containers of its service, from what it was called there before it left, and from its Compose files. Of those
 * no more than names is printed: their paths are labels, which whoever made the container has chosen.
 */
import type { Cause, LastingFix } from "../../api/causes.ts";
import { isUserDefined } from "../../container/facts/fact.ts";
import { commandOf } from "../../base/lib/text.ts";
import { definitionOf, recreateCommand, serviceChange } from "./fixes.ts";
import type { KnownContainer, KnownContainers } from "./known-container.ts";
import { type Situation, type Move, cause } from "./situation.ts";
import type { FormerAddress } from "../../container/registry/former-addresses.ts";
import { ageText } from "../../base/lib/quantity.ts";

type Known = Pick<Situation, "known" | "former">;

/** One command has so many. */
const ALIASES_MAX = 16;
const SHORT_ID_LENGTH = 12;
/** Docker takes any text; what a name in DNS cannot be is no loss, and in no command. */
const PLAIN_ALIAS = /^(?!-)[\w.*-]+$/;
/** Any other one is quoted in YAML. */
const PLAIN_KEY = /^[a-z_][\w.-]*$/i;

/** The names that Compose would give a container on a network, beside its own. */
function aliasesOn(container: KnownContainer, network: string, { known, former = [] }: Known): string[] {
  const { compose, id, name } = container;
  const aliases = new Set<string>();
  if (compose !== undefined && !compose.isOneOff) aliases.add(compose.service.toLowerCase());
  for (const each of former) {
    if (each.containerId !== id || each.networkName !== network) continue;
    for (const alias of each.names) aliases.add(alias);
  }
  for (const replica of replicasOf(container, known)) {
    const own = ownNames(replica);
    for (const endpoint of replica.endpoints) {
      if (endpoint.networkName !== network) continue;
      for (const alias of endpoint.names) if (!own.has(alias)) aliases.add(alias);
    }
  }
  const own = ownNames({ id, name });
  return [...aliases]
    .filter((alias) => PLAIN_ALIAS.test(alias))
    .filter((alias) => !own.has(alias) && !isOthers(alias, container, network, known))
    .slice(0, ALIASES_MAX);
}

/** Without its aliases a container would be found by its own name alone. */
export function connectCommand(container: KnownContainer, network: string, known: Known): string {
  // The default bridge has none, and Docker refuses to give one there.
  const names = isUserDefined(network) ? aliasesOn(container, network, known) : [];
  const aliases = names.flatMap((alias) => ["--alias", alias]);
  return commandOf("docker", "network", "connect", ...aliases, network, container.name);
}

/** An alias is given only while a container is being connected. */
export function reconnectCommand(container: KnownContainer, network: string, known: Known): string {
  const leave = commandOf("docker", "network", "disconnect", network, container.name);
  return `${leave} && ${connectCommand(container, network, known)}`;
}

/** A service without the key `networks` is on this one, and with the key it is not, unless the key names it. */
const DEFAULT_NETWORK = "default";

/**
 * The change by which `up` connects a client's service. Where its files are not known, what Compose has made from them says which
 * networks they have.
 */
export function joinNetwork(container: KnownContainer, network: string, known: Known): LastingFix | null {
  const { compose } = container;
  if (compose === undefined) return null;
  const recreate = recreateCommand(container);
  const { key, isDeclared: isInFile } = keyOf(container, network);
  const external = isInFile ? "" : `, and declare networks.${key} with "external: true"`;
  const text = definitionOf(container);
  const change = (what: string, of = "networks"): LastingFix | null => serviceChange(container, of, what, recreate);
  if (text === undefined) {
    if (isDeclared(container, network, known))
      return change(`"${key}" was there when Compose made it: create it again`);
    return change(
      `set it to ${listOf([...composedKeys(container), key])}${external}; if it is there, create the container again`,
    );
  }
  const { networks, networkMode } = text;
  if (
    networks?.names.includes(key) === true ||
    (networks === undefined && networkMode === undefined && key === DEFAULT_NETWORK)
  )
    return change(`"${key}" is there: create the container again`);
  if (networks?.isMap === true) return change(`add "${key}: {}" to it, beside ${networks.names.join(", ")}${external}`);
  if (networks !== undefined) return change(`set it to ${listOf([...networks.names, key])}${external}`);
  const list = listOf([DEFAULT_NETWORK, key]);
  return networkMode === undefined
    ? change(`set it to ${list}${external}: a service without it is on "${DEFAULT_NETWORK}"`)
    : change(`replace it by networks: ${list}${external}`, "network_mode");
}

/** How the files of a container's project call a network, and whether they declare it. */
function keyOf({ compose, project }: KnownContainer, network: string): { key: string; isDeclared: boolean } {
  const own = `${compose?.project ?? ""}_`;
  const inFile = [...(project?.()?.networks ?? [])].find(([key, name]) => (name ?? `${own}${key}`) === network);
  if (inFile !== undefined) return { key: inFile[0], isDeclared: true };
  const isOwn = network.startsWith(own);
  return { key: isOwn ? network.slice(own.length) : network, isDeclared: isOwn };
}

/** The networks that Compose has connected a container to, as far as they show it. */
function composedKeys(container: KnownContainer): string[] {
  const own = `${container.compose?.project ?? ""}_`;
  return container.endpoints
    .filter(({ isComposed, networkName }) => isComposed === true || networkName.startsWith(own))
    .map(({ networkName }) => keyOf(container, networkName).key);
}

/** As a list of YAML. */
function listOf(names: readonly string[]): string {
  return `[${[...new Set(names)].map((name) => (PLAIN_KEY.test(name) ? name : JSON.stringify(name))).join(", ")}]`;
}

/** A container that has lost a name which Compose has given it. */
export function recreated(container: KnownContainer): Pick<Cause, "lastingFix"> {
  const change = "it is right: create the container again";
  return { lastingFix: serviceChange(container, "networks", change, recreateCommand(container)) };
}

/** Whether Compose has connected this container, or one that it has made from the same text, to the network. */
export function isDeclared(container: KnownContainer, network: string, { known, former = [] }: Known): boolean {
  if (container.networkMode === network) return true;
  const { configHash } = container.compose ?? {};
  return (
    former.some((each) => each.containerId === container.id && each.networkName === network && each.isComposed) ||
    (configHash !== undefined &&
      replicasOf(container, known).some(
        ({ compose, endpoints }) =>
          compose?.configHash === configHash &&
          endpoints.some((each) => each.networkName === network && each.isComposed === true),
      ))
  );
}

/** The other running containers of its service. */
export function replicasOf({ id, compose }: KnownContainer, known: Situation["known"]): KnownContainer[] {
  if (compose === undefined || compose.isOneOff) return [];
  return known
    .ofService(compose.service.toLowerCase())
    .filter(
      (each) =>
        each.id !== id &&
        each.ended === undefined &&
        each.compose?.project === compose.project &&
        !each.compose.isOneOff,
    );
}

/** A name that a container of another project has on the network stays that container's alone. */
function isOthers(alias: string, { compose }: KnownContainer, network: string, known: Situation["known"]): boolean {
  return known
    .places(alias)
    .some(
      ({ container, endpoints }) =>
        container.compose?.project !== compose?.project && endpoints.some(({ networkName }) => networkName === network),
    );
}

function ownNames({ id, name }: Pick<KnownContainer, "id" | "name">): Set<string> {
  return new Set([name.toLowerCase(), id.slice(0, SHORT_ID_LENGTH)]);
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
