/**
 * FindContainer: finds a container by its name, the beginning of its ID or its Compose service, and the container whose
 * namespace it uses. Requests are about one container: a service with several is refused with their names.
 */
import type { ContainerRef } from "../../api/names.ts";
import { composeServiceOf } from "../../container/facts/compose.ts";
import { type ContainerFact, sharedWith } from "../../container/facts/fact.ts";
import { type NamedContainer, containerCalled } from "../../base/model/container-choice.ts";
import { Fault } from "../../base/lib/fault.ts";
import { presentation } from "../../base/dns/name.ts";

export function findContainer(facts: Iterable<ContainerFact>, word: string): ContainerFact {
  const all = [...facts];
  // A name or an ID takes precedence; nothing else is to be found out then.
  const exact = all.find(({ name, id }) => name === word || id === word);
  if (exact !== undefined) return exact;
  const named = all.map((fact) => ({ ...namedContainer(fact), fact }));
  return containerCalled(named, word).fact;
}

/** One that does not run: the newest by its name, ID or service. */
export function stoppedCalled<
  T extends Pick<NamedContainer, "id" | "name"> & {
    readonly compose: { readonly service: string } | undefined;
    readonly ended: unknown;
  },
>(all: readonly T[], word: string): T | undefined {
  const stopped = all.filter(({ ended }) => ended !== undefined);
  return (
    stopped.find(({ name, id }) => name === word || id === word) ??
    stopped.find(({ compose }) => compose?.service === word) ??
    (word.length >= ID_LENGTH_MIN ? stopped.find(({ id }) => id.startsWith(word)) : undefined)
  );
}

export function namedContainer(fact: ContainerFact): NamedContainer {
  const { project = null, service = null } = composeServiceOf(fact) ?? {};
  return { id: fact.id, name: fact.name, project, service };
}

/** Docker prints so much of an ID. */
const ID_LENGTH_MIN = 12;

/** Whether it was started in the network namespace of another container. */
export function isShared({ networkMode }: Pick<ContainerFact, "networkMode">): boolean {
  return sharedWith(networkMode) !== undefined;
}

/** The container whose namespace this one uses: itself, or the one that it was started with (--network container:NAME). */
export function namespaceOwner(facts: ReadonlyMap<string, ContainerFact>, fact: ContainerFact): ContainerFact {
  const other = sharedWith(fact.networkMode);
  if (other === undefined) return fact;
  const owner = sharedOwner(facts, fact);
  if (owner === undefined) {
    throw new Fault(
      "NO_SUCH_CONTAINER",
      `"${fact.name}" uses the network namespace of container ${other.slice(0, 12)}, which is not running`,
      { remedy: "Start that container: both share its namespace." },
    );
  }
  return owner;
}

/** One may have been started with one that was started with another one, and so on. */
const SHARING_MAX = 16;

/** The other container whose namespace this one uses; undefined if there is none, or if that one does not run. */
export function sharedOwner(facts: ReadonlyMap<string, ContainerFact>, fact: ContainerFact): ContainerFact | undefined {
  let owner: ContainerFact | undefined;
  for (let hops = 0; hops < SHARING_MAX; hops++) {
    const next = startedWith(facts, owner ?? fact);
    if (next === undefined) return owner;
    owner = next;
  }
  return owner;
}

function startedWith(
  facts: ReadonlyMap<string, ContainerFact>,
  { networkMode }: ContainerFact,
): ContainerFact | undefined {
  const other = sharedWith(networkMode);
  if (other === undefined) return undefined;
  return facts.get(other) ?? [...facts.values()].find(({ name, id }) => name === other || id.startsWith(other));
}

/** A container as reports name it. */
export function containerRef(fact: ContainerFact, owner: ContainerFact): ContainerRef {
  return { id: fact.id, name: fact.name, ...(owner !== fact && { sharedWith: owner.name }) };
}

const REBUILD_MS = 1_000;

/**
 * Whether a name with several labels is one of this engine: a container's name or alias, or NAME.NETWORK. The
 * failure tables use it on the query path, for names that fail for the first time, so its sets are rebuilt rarely.
 */
export class ContainerNames {
  readonly #facts: () => Iterable<ContainerFact>;
  #names = new Set<string>();
  #networks = new Set<string>();
  #builtMs = -Infinity;

  constructor(facts: () => Iterable<ContainerFact>) {
    this.#facts = facts;
  }

  /** `labels` are in lower case, without the root label. */
  has(labels: Uint8Array, length: number): boolean {
    this.#rebuild();
    const name = presentation(labels, 0, length);
    if (this.#names.has(name)) return true;
    for (let dot = name.indexOf("."); dot > 0; dot = name.indexOf(".", dot + 1)) {
      if (this.#networks.has(name.slice(dot + 1))) return true;
    }
    return false;
  }

  #rebuild(): void {
    const now = performance.now();
    if (now - this.#builtMs < REBUILD_MS) return;
    this.#builtMs = now;
    this.#names = new Set();
    this.#networks = new Set();
    for (const { name, endpoints } of this.#facts()) {
      if (name.includes(".")) this.#names.add(name.toLowerCase());
      for (const { networkName, names } of endpoints) {
        this.#networks.add(networkName.toLowerCase());
        for (const each of names) if (each.includes(".")) this.#names.add(each.toLowerCase());
      }
    }
  }
}
