/**
 * Fixes: what to do about a cause, as a command and in the words of a Compose file, and how a container comes back to a network with the
 * names that Compose gives it there. Those follow from labels, from the other containers of its service, from what it was called there
 * before it left, and from its Compose files. Of these no more than names is printed: their paths are labels, which whoever made the
 * container has chosen. Names in a command are quoted for a shell, because the reader copies it.
 */
import type { Cause, LastingFix } from "../../api/causes.ts";
import type { ComposeServiceText } from "../../base/model/compose.ts";
import { commandOf } from "../../base/lib/text.ts";
import { isUserDefined } from "../../container/facts/fact.ts";
import type { KnownContainer } from "./known-container.ts";
import type { Situation } from "./situation.ts";

/** What Compose accepts as the name of a project or a service. */
const COMPOSE_NAME = /^[a-zA-Z0-9][\w.-]*$/;
/** Files in one command. */
const FILES_MAX = 4;
const FILE_LENGTH_MAX = 200;
/** A label may hold any bytes; in a terminal, a command must be what it looks like. */
const PLAIN_PATH = /^[\P{C}]+$/u;

/** Makes the container of a service again: `up` alone does not if its part of the file is as it was. */
export function recreateCommand(container: KnownContainer): string | undefined {
  return composeCommand(container, "--force-recreate");
}

/** Applies a change of the Compose file, or makes the container that is not there. */
export function upCommand(
  container: Pick<KnownContainer, "compose">,
  ...options: readonly string[]
): string | undefined {
  return composeCommand(container, ...options);
}

/** As whoever ran Compose may run it again, in any folder; undefined if its labels are not what Compose writes. */
function composeCommand(
  { compose }: Pick<KnownContainer, "compose">,
  ...options: readonly string[]
): string | undefined {
  if (compose === undefined) return undefined;
  const { project, service, files, folder } = compose;
  const isKnown = files.length > 0 && files.length <= FILES_MAX && files.every((file) => isPath(file));
  if (!isKnown || !COMPOSE_NAME.test(project) || !COMPOSE_NAME.test(service)) return undefined;
  const isElsewhere = folder !== undefined && folder !== folderOf(files[0] ?? "");
  if (isElsewhere && !isPath(folder)) return undefined;
  return commandOf(
    ...["docker", "compose", "-p", project],
    ...(isElsewhere ? ["--project-directory", folder] : []),
    ...files.flatMap((file) => ["-f", file]),
    ...["up", "-d", ...options, service],
  );
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

function isPath(text: string): boolean {
  return text.startsWith("/") && text.length <= FILE_LENGTH_MAX && PLAIN_PATH.test(text);
}

/** One change of a service of a container, in the file in which its key stands. */
export function serviceChange(
  container: Pick<KnownContainer, "compose" | "project">,
  key: string,
  change: string,
  command = upCommand(container),
): LastingFix | null {
  const { compose } = container;
  if (compose === undefined) return null;
  const text = definitionOf(container);
  const { file, service } = text?.keys.get(key.split(".", 1)[0] ?? "") ?? text?.location ?? compose;
  return { file, service, key: `services.${service}.${key}`, change, ...(command !== undefined && { command }) };
}

/** What the Compose files say of the service of a container; undefined if that is not known. */
export function definitionOf({
  compose,
  project,
}: Pick<KnownContainer, "compose" | "project">): ComposeServiceText | undefined {
  return compose === undefined ? undefined : project?.()?.services.get(compose.service);
}

/** A cause with its fix in one line. */
export function causeText({ sentence, fix, advice }: Cause): string {
  if (fix !== null) return `${sentence}; to fix it: ${fix}`;
  return advice === undefined ? sentence : `${sentence}; ${advice}`;
}

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
