/**
 * Scope: the containers that a rule of a lease is for, by what they are. A container that uses the namespace of another one
 * queries from there, so the rule is for that one.
 */
import type { LeaseScope } from "../../api/lease.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { RuleScope } from "../../query/verdict/rule-book.ts";
import { namedContainer, sharedOwner } from "../containers/find-container.ts";
import { badRule, refuseUnknownKeys, textOf } from "./fields.ts";

/** The beginning of an ID has at least so many characters, as people copy it. */
const ID_MIN = 6;
const KEYS = ["container", "project", "service", "network", "label"];

type Facts = ReadonlyMap<string, ContainerFact>;

interface ReadScope {
  readonly scope: RuleScope;
  /** The key of the label by which containers are chosen. */
  readonly labelKey: string | undefined;
}

export function readScope(value: unknown, facts: () => Facts): ReadScope {
  if (value === undefined) return { scope: scopeOf({}, facts), labelKey: undefined };
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw badRule('Invalid value of in: use a map such as {"container": "app"}');
  refuseUnknownKeys(value, KEYS, "in");
  const wanted: Record<string, string> = {};
  for (const key of KEYS) {
    const text = textOf(value as Readonly<Record<string, unknown>>, key);
    if (text !== undefined) wanted[key] = text;
  }
  return { scope: scopeOf(wanted, facts), labelKey: wanted["label"]?.split("=")[0] };
}

function scopeOf(wanted: LeaseScope, facts: () => Facts): RuleScope {
  return {
    key: JSON.stringify(KEYS.map((key) => wanted[key as keyof LeaseScope] ?? null)),
    select: () => {
      const all = facts();
      const ids = new Set<string>();
      for (const fact of all.values()) if (isMeant(fact, wanted)) ids.add((sharedOwner(all, fact) ?? fact).id);
      return ids;
    },
  };
}

function isMeant(fact: ContainerFact, { container, project, service, network, label }: LeaseScope): boolean {
  const place = namedContainer(fact);
  return (
    (container === undefined ||
      fact.name === container ||
      place.service === container ||
      (container.length >= ID_MIN && fact.id.startsWith(container))) &&
    (project === undefined || place.project === project) &&
    (service === undefined || place.service === service) &&
    (network === undefined || fact.endpoints.some(({ networkName }) => networkName === network)) &&
    (label === undefined || hasLabel(fact, label))
  );
}

/** Labels of images count, too: a rule gives its container nothing. */
function hasLabel({ labels, imageLabels }: ContainerFact, text: string): boolean {
  const [key = "", ...rest] = text.split("=");
  const value = Object.hasOwn(labels, key)
    ? labels[key]
    : Object.hasOwn(imageLabels.labels, key)
      ? imageLabels.labels[key]
      : undefined;
  return value !== undefined && (rest.length === 0 || value === rest.join("="));
}
