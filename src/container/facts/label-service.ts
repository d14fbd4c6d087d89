/**
 * LabelService: the place of a container in a zone: its project and service, as Compose or its creator's labels name
 * them, its names in the service, and its named ports. All of it is input of people who create containers.
 */
import { LIMITS } from "../../base/limits.ts";
import { shortened } from "../../base/lib/text.ts";
import { COMPOSE_LABEL } from "../../base/model/compose.ts";
import type { LabelPolicy } from "../../base/model/name-choices.ts";
import { type ServicePort, namedPort, wellKnownPort } from "./service-port.ts";
import { isOneOff } from "./compose.ts";
import type { ContainerFact } from "./fact.ts";
import { type Labels, effectiveLabels } from "./labels.ts";

const PROJECT_LABEL = "io.dns11.project";
const SERVICE_LABEL = "io.dns11.service";
/** `NAME=PORT[/PROTOCOL]`, separated by blanks or commas. */
const PORTS_LABEL = "io.dns11.ports";
export const ZONE_LABELS = [PROJECT_LABEL, SERVICE_LABEL, PORTS_LABEL] as const;

export interface ServicePlace {
  readonly project: string;
  readonly service: string;
  /** Its names in the service: the one that it is called by comes first. */
  readonly hosts: readonly string[];
  readonly ports: readonly ServicePort[];
}

/** What labels say about projects, services and hosts: one label of a name, in lower case. */
const LABEL = /^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/;
/** Wildcards of queries use this word. */
const RESERVED = "any";
const SHORT_ID_LENGTH = 12;

/** undefined for a container that belongs to no service, as one of `docker compose run`, or to one whose name is no label of a domain name. */
export function servicePlace(fact: ContainerFact, policy: LabelPolicy): ServicePlace | undefined {
  const labels = effectiveLabels(fact, policy);
  const project = projectIn(labels);
  const service = domainLabel(labels[SERVICE_LABEL] ?? (isOneOff(labels) ? undefined : labels[COMPOSE_LABEL.service]));
  if (project === undefined || service === undefined) return undefined;
  return { project, service, hosts: hostsOf(fact, labels), ports: portsOf(fact, labels, policy) };
}

/** The project in a zone; undefined without one whose name is a label of a domain name. */
export function projectIn(labels: Labels): string | undefined {
  return domainLabel(labels[PROJECT_LABEL] ?? labels[COMPOSE_LABEL.project]);
}

/** The warning for labels that cannot be used; the first problem of each. */
export function serviceWarning(labels: Labels): string | undefined {
  const names = [PROJECT_LABEL, SERVICE_LABEL].flatMap((key) => {
    const text = labels[key];
    if (text === undefined || domainLabel(text) !== undefined) return [];
    return [
      `invalid label ${key}="${shown(text)}": use letters, digits, "-" and "_", at most 63, but not "${RESERVED}"; the container has no name in a zone`,
    ];
  });
  const { bad, isTooMany } = labelledPorts(labels);
  const ports = [
    ...(bad === undefined
      ? []
      : [`invalid label ${PORTS_LABEL}: "${shown(bad)}" is ignored: use NAME=PORT or NAME=PORT/udp, such as http=80`]),
    ...(isTooMany ? [`label ${PORTS_LABEL} has too many ports: the limit is ${LIMITS.labelPorts}`] : []),
  ];
  const all = [...names, ...ports];
  return all.length === 0 ? undefined : all.join("; ");
}

/** A hostname that its creator chose, then its number in Compose, then the hostname that the engine made. */
function hostsOf({ id, hostname }: ContainerFact, labels: Labels): string[] {
  const named = domainLabel(hostname.split(".", 1)[0]);
  const number = domainLabel(labels[COMPOSE_LABEL.number]);
  const isMade = hostname === id.slice(0, SHORT_ID_LENGTH);
  const all = isMade ? [number, named] : [named, number];
  const usable = [...new Set(all.filter((each) => each !== undefined))];
  return usable.length > 0 ? usable : [id.slice(0, SHORT_ID_LENGTH)];
}

/** The label's; without one those that the creator published or exposed, and the image's if the operator trusts it. */
function portsOf({ ports }: ContainerFact, labels: Labels, { trustsImages }: LabelPolicy): readonly ServicePort[] {
  if (labels[PORTS_LABEL] !== undefined) return labelledPorts(labels).ports;
  const all = [...ports.published, ...ports.exposed, ...(trustsImages ? ports.ofImage : [])];
  return [...new Set(all)].flatMap((text) => wellKnownPort(text) ?? []);
}

interface LabelledPorts {
  readonly ports: readonly ServicePort[];
  readonly bad: string | undefined;
  readonly isTooMany: boolean;
}

function labelledPorts(labels: Labels): LabelledPorts {
  const text = labels[PORTS_LABEL] ?? "";
  const words = text.slice(0, LIMITS.labelChars).split(/[\s,]+/);
  const isCut = text.length > LIMITS.labelChars;
  // The last word of a label that is too long may be cut.
  const all = (isCut ? words.slice(0, -1) : words).filter((word) => word !== "");
  const ports = all.flatMap((word) => namedPort(word) ?? []);
  return {
    ports: ports.slice(0, LIMITS.labelPorts),
    bad: all.find((word) => namedPort(word) === undefined),
    isTooMany: isCut || ports.length > LIMITS.labelPorts,
  };
}

function domainLabel(text: string | undefined): string | undefined {
  const name = text?.toLowerCase() ?? "";
  return LABEL.test(name) && name !== RESERVED ? name : undefined;
}

function shown(text: string): string {
  return shortened(text, LIMITS.labelCharsShown);
}
