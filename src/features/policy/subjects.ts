import { typeName } from "../../base/dns/record-type.ts";
import { type ContainerFact, DEFAULT_BRIDGE } from "../../container/facts/fact.ts";
import { namedContainer, sharedOwner } from "../../control/situation/find-container.ts";
import { PolicyBook } from "./book/policy-book.ts";
import type { PolicySubject } from "./book/assignment.ts";
import type { RunCore } from "../contract.ts";

type Facts = ReadonlyMap<string, ContainerFact>;

/** With what is logged when a container is refused a name. */
export function openPolicyBook(
  { limitedLog, containers }: Pick<RunCore, "limitedLog" | "containers">,
  showsNames: () => boolean,
): PolicyBook {
  const nameOf = (id: string): string => containers().get(id)?.name ?? id.slice(0, 12);
  const book = new PolicyBook({
    showsNames,
    onGrant: (id, text) => {
      const container = nameOf(id);
      limitedLog.line("warn", container, { container, grant: text }, "an operator allows a name");
    },
    onLogged: (id, { isEnforced, text }, name, type) => {
      const container = nameOf(id);
      const asked = { ...(name !== null && { name }), type: typeName(type) };
      if (isEnforced) limitedLog.log("warn", container, { container, ...asked, rule: text }, "a policy refused a name");
      else limitedLog.log("info", container, { container, ...asked, rule: text }, "a policy would have refused a name");
    },
  });
  book.subjects = policySubjects(containers);
  return book;
}

/** All containers, or those in the namespace of one. */
function policySubjects(facts: () => Facts): (ownerId?: string) => Iterable<PolicySubject> {
  return function* subjects(ownerId) {
    const all = facts();
    for (const fact of all.values()) {
      const owner = sharedOwner(all, fact) ?? fact;
      if (ownerId === undefined || owner.id === ownerId) yield new FactSubject(fact, owner.id);
    }
  };
}

/** There may be thousands, of which most have no policy: nothing is found out before it is asked for. */
class FactSubject implements PolicySubject {
  readonly #fact: ContainerFact;
  readonly ownerId: string;

  constructor(fact: ContainerFact, ownerId: string) {
    this.#fact = fact;
    this.ownerId = ownerId;
  }

  get id(): string {
    return this.#fact.id;
  }

  get name(): string {
    return this.#fact.name;
  }

  get isUndescribed(): boolean {
    return this.#fact.isUndescribed === true;
  }

  get networks(): readonly string[] {
    const { endpoints, onDefaultBridge } = this.#fact;
    const names = endpoints.map(({ networkName }) => networkName);
    return onDefaultBridge === undefined ? names : [...names, DEFAULT_BRIDGE];
  }

  get project(): string | null {
    return namedContainer(this.#fact).project;
  }

  get service(): string | null {
    return namedContainer(this.#fact).service;
  }

  readonly label = (key: string): string | undefined => {
    const { labels, imageLabels } = this.#fact;
    if (Object.hasOwn(labels, key)) return labels[key];
    return Object.hasOwn(imageLabels.labels, key) ? imageLabels.labels[key] : undefined;
  };
}
