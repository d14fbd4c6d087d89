/**
 * ContainerChoice: the containers that a user's word selects: a name, an ID, or a Compose service. The daemon, the doctor and the commands
 * choose in the same way.
 */
import { byName } from "../lib/text.ts";
import { Fault } from "../lib/fault.ts";
import { nearest } from "../lib/nearest.ts";

export interface NamedContainer {
  readonly id: string;
  readonly name: string;
  /** Its Compose project and service; null without one. */
  readonly project: string | null;
  readonly service: string | null;
}

/** From this length on, the beginning of an ID is as good as the ID: Docker prints this much of it. */
const SHORT_ID_LENGTH = 12;
/** The most containers that an error lists by name. */
const LISTED_MAX = 8;

/**
 * The containers that the word selects, in the order of their names: several only for a service. A service takes precedence over the
 * beginning of an ID, because "db" and "cafe" are both.
 */
export function containersCalled<T extends NamedContainer>(all: Iterable<T>, word: string, project?: string): T[] {
  const candidates = inProject([...all], project);
  const named = candidates.filter(({ name, id }) => name === word || id === word);
  if (named.length > 0) return named.slice(0, 1);
  const isId = (id: string): boolean => word !== "" && id.startsWith(word);
  const byId = candidates.filter(({ id }) => isId(id));
  if (byId.length === 1 && word.length >= SHORT_ID_LENGTH) return byId;
  const services = candidates.filter(({ service }) => service === word);
  if (services.length > 0) return services.toSorted(byName);
  if (byId.length > 1) {
    throw new Fault("AMBIGUOUS_CONTAINER", `The IDs of several containers begin with "${word}": ${listOf(byId)}`, {
      remedy: "Type more characters of the ID, or use a name.",
    });
  }
  if (byId.length === 0) throw notFound(candidates, word, project);
  return byId;
}

/** The one container that the word selects; throws if there is none, or more than one. */
export function containerCalled<T extends NamedContainer>(all: Iterable<T>, word: string, project?: string): T {
  const chosen = containersCalled(all, word, project);
  const [first] = chosen;
  if (first !== undefined && chosen.length === 1) return first;
  throw new Fault("AMBIGUOUS_CONTAINER", severalText(word, chosen), { remedy: "Use the name of one of them." });
}

/** Writes `"api" is 2 containers: shop-api-1, shop-api-2`, for example. */
export function severalText(word: string, chosen: readonly NamedContainer[]): string {
  return `"${word}" is ${chosen.length} containers: ${listOf(chosen)}`;
}

/** The containers of a project; all without one. */
export function inProject<T extends NamedContainer>(all: readonly T[], project: string | undefined): readonly T[] {
  if (project === undefined) return all;
  const found = all.filter((each) => each.project === project);
  if (found.length > 0) return found;
  const suggestion = nearest(
    project,
    all.flatMap((each) => each.project ?? []),
  );
  const hint = suggestion === undefined ? "" : `; did you mean "${suggestion}"?`;
  throw new Fault("NO_SUCH_PROJECT", `No running container belongs to the Compose project "${project}"${hint}`, {
    remedy: "dns11 ps lists the running containers and their projects.",
  });
}

function notFound(candidates: readonly NamedContainer[], word: string, project: string | undefined): Fault {
  const where = project === undefined ? "" : ` in project "${project}"`;
  const words = candidates.flatMap(({ name, service }) => (service === null ? [name] : [name, service]));
  const suggestion = nearest(word, words);
  const hint = suggestion === undefined ? "" : `; did you mean "${suggestion}"?`;
  return new Fault("NO_SUCH_CONTAINER", `No running container or service named "${word}"${where}${hint}`, {
    remedy: "dns11 ps lists the running containers and their services.",
  });
}

function listOf(containers: readonly NamedContainer[]): string {
  const names = containers.slice(0, LISTED_MAX).map(({ name }) => name);
  const more = containers.length - names.length;
  return `${names.join(", ")}${more === 0 ? "" : ` and ${more} more`}`;
}

/** `label=KEY[=VALUE]` and `network=NAME`. */
export type OnlyFilter =
  | { readonly kind: "label"; readonly key: string; readonly value: string | undefined }
  | { readonly kind: "network"; readonly name: string };

export const ONLY_FORMS = "label=KEY, label=KEY=VALUE or network=NAME";

/** Parses one filter; undefined where it has neither form. */
export function parseOnly(text: string): OnlyFilter | undefined {
  const [, kind, rest] = /^(label|network)=(.+)$/s.exec(text) ?? [];
  if (rest === undefined) return undefined;
  if (kind === "network") return { kind: "network", name: rest };
  const equals = rest.indexOf("=");
  if (equals === 0) return undefined;
  return equals === -1
    ? { kind: "label", key: rest, value: undefined }
    : { kind: "label", key: rest.slice(0, equals), value: rest.slice(equals + 1) };
}

export function onlyText(filter: OnlyFilter): string {
  if (filter.kind === "network") return `network=${filter.name}`;
  return `label=${filter.key}${filter.value === undefined ? "" : `=${filter.value}`}`;
}
