/**
 * PolicyList: the containers with a policy, and how far each is confined.
 */
import type { ClosedMoment, PoliciesReport, PolicyContainer, PolicyRefusal } from "../../../api/policies.ts";
import { gatherInSlices } from "../../../base/lib/slices.ts";
import type { ContainerFact } from "../../../container/facts/fact.ts";
import { addressText } from "../../../base/model/address.ts";
import type { Held, PolicyBook } from "../book/policy-book.ts";
import type { Assignment } from "../book/assignment.ts";
import type { RefusedAddress } from "../table/policy-table.ts";
import { scopeText } from "../model/policy.ts";
import { namedContainer, sharedOwner } from "../../../control/situation/find-container.ts";
import type { ControlPorts } from "../../../control/situation/ports.ts";
import { typeName } from "../../../base/dns/record-type.ts";
import type { LoggedRefusal } from "../book/refusal-log.ts";

const REFUSED_SHOWN = 100;
const PROTOCOL_NAMES = new Map([
  [1, "icmp"],
  [6, "tcp"],
  [17, "udp"],
  [58, "icmpv6"],
]);

interface Ports extends Pick<ControlPorts, "containers"> {
  readonly policies: PolicyBook;
}

const NAMES_LISTED = 5;
/** One lookup may ask for several types. */
const TYPES_OF_ONE = 4;

const BIRTH: ClosedMoment = {
  isClosed: false,
  because: "Docker's resolver answers a container until dns11 has attached to it, some milliseconds after its start",
};
const DEATH: ClosedMoment = {
  isClosed: false,
  because: "if dns11 ends, Docker's resolver answers again, and forwards every name: dns11 has no keeper to refuse it",
};
const KEPT_AT_DEATH: ClosedMoment = {
  isClosed: false,
  because:
    "if dns11 ends, its keeper refuses what is asked at 127.0.0.11; but if the keeper ends, too, Docker's resolver answers",
};
const BOOT: ClosedMoment = {
  isClosed: false,
  because: "Docker starts containers before dns11 runs, and its resolver answers them",
};
const BIRTH_WITHOUT_NETWORK: ClosedMoment = {
  isClosed: false,
  because: "its policy is not that of all its networks, so its connections are not judged until dns11 knows it",
};
const HELD: ClosedMoment = {
  isClosed: true,
  because: "the kernel judges its packets on the host's side, and what Docker's resolver forwards for it, too",
};
/** What Docker forwards from the host no filter can tell from anything else. */
const DOCKER_FORWARDS =
  'Docker\'s own resolver forwards any name for it, from the host: set "dns": ["169.254.53.53"] in daemon.json and create the container ' +
  "again, then that leaves from the container and is judged, too";
const NAMES_AT_BIRTH: ClosedMoment = {
  isClosed: false,
  because: `its connections are held, but until dns11 has attached, ${DOCKER_FORWARDS}`,
};
const NAMES_IN_LIFE: ClosedMoment = {
  isClosed: false,
  because: `its connections are held, but root in the container can get past dns11's rules there, and then ${DOCKER_FORWARDS}`,
};
const NAMES_AT_DEATH: ClosedMoment = {
  isClosed: false,
  because: `its connections are held, but if dns11 ends, and its keeper, too, ${DOCKER_FORWARDS}`,
};
const NAMES_AT_BOOT: ClosedMoment = {
  isClosed: false,
  because: `its connections are held, but until dns11 runs, ${DOCKER_FORWARDS}`,
};
const RECORDED: ClosedMoment = { isClosed: false, because: "the policy only records: mode is not enforce" };
const NAMES_ONLY: ClosedMoment = {
  isClosed: false,
  because:
    "only names that are asked of dns11 are filtered (addresses: names): a program that has an address, or asks another server, is not held",
};

export async function listPolicies(ports: Ports): Promise<PoliciesReport> {
  const { policies } = ports;
  return {
    policies: policies.policies.map(({ name, mode, where, scopes, allow, deny }) => ({
      name,
      mode,
      where,
      for: scopes.map((each) => scopeText(each)),
      allow: allow.length,
      deny: deny.length,
    })),
    containers: await gatherInSlices(eachContainer(ports), 1),
    ended: [...policies.endedRefusals()].map(([containerId, refused]) => ({
      containerId,
      refused: refused.slice(0, REFUSED_SHOWN).map(refusedText),
    })),
    closedNetworks: policies.closedNetworks(),
  };
}

/** The kernel is asked for each what it has refused. */
function* eachContainer(ports: Ports): Generator<PolicyContainer | undefined> {
  const { facts } = ports.containers;
  const assignments = ports.policies.assignments();
  for (const fact of [...facts.values()]) {
    const owner = sharedOwner(facts, fact) ?? fact;
    const assignment = assignments.get(owner.id);
    yield assignment && containerOf(ports, fact, owner, assignment);
  }
}

function containerOf(ports: Ports, fact: ContainerFact, owner: ContainerFact, assignment: Assignment): PolicyContainer {
  const { containers, policies } = ports;
  const { project, service } = namedContainer(fact);
  const isEnforced = assignment.policies.some(({ policy }) => policy.mode === "enforce");
  const [first] = assignment.policies;
  const notServed = notServedReason(containers, owner);
  const unheld: ClosedMoment | undefined =
    notServed === undefined ? undefined : { isClosed: false, because: `dns11 does not serve it: ${notServed}` };
  const moment = (of: ClosedMoment): ClosedMoment => unheld ?? (isEnforced ? of : RECORDED);
  const held = policies.heldOf(owner.id);
  return {
    container: fact.name,
    containerId: fact.id,
    project,
    service,
    policies: assignment.policies.map(({ policy: { name, mode, where } }, index) => ({
      name,
      mode,
      by: assignment.by[index] ?? "",
      where,
    })),
    mode: isEnforced ? "enforce" : (first?.policy.mode ?? "audit"),
    notServed: notServed ?? null,
    ...policies.countsOf(owner.id),
    names: lastNames(policies, owner.id),
    addresses: held === undefined ? null : addressesOf(held),
    boot: moment(bootOf(held)),
    birth: moment(birthOf(held)),
    life: moment(lifeOf(held)),
    death: moment(deathOf(held, policies.isKept())),
    grants: policies.grantsOf(owner.id).map(({ text }) => text),
    problems: [
      ...assignment.problems,
      ...(held?.reason === undefined ? [] : [`its policy is not enforced, so it resolves nothing: ${held.reason}`]),
      ...(notServed === undefined ? [] : [notServedText(held, notServed)]),
    ],
  };
}

/** The kernel holds its connections, whoever answers it; but no answer opens an address. */
function notServedText(held: Held | undefined, why: string): string {
  const effect = held?.state === "enforced" ? "no name opens an address for it" : "its policy does nothing";
  return `dns11 does not serve it, so ${effect}: ${why}`;
}

function bootOf(held: Held | undefined): ClosedMoment {
  if (held?.state !== "enforced") return BOOT;
  if (!held.isClosedAtBirth) return BIRTH_WITHOUT_NETWORK;
  if (held.bootProblem !== undefined)
    return {
      isClosed: false,
      because: `its networks are not closed before Docker starts containers: ${held.bootProblem}`,
    };
  return held.isDockerHeld ? HELD : NAMES_AT_BOOT;
}

function birthOf(held: Held | undefined): ClosedMoment {
  if (held?.state !== "enforced") return BIRTH;
  if (!held.isClosedAtBirth) return BIRTH_WITHOUT_NETWORK;
  return held.isDockerHeld ? HELD : NAMES_AT_BIRTH;
}

function lifeOf(held: Held | undefined): ClosedMoment {
  if (held === undefined) return NAMES_ONLY;
  if (held.state === "enforced") return held.isDockerHeld ? HELD : NAMES_IN_LIFE;
  return { isClosed: false, because: held.reason ?? "the kernel does not judge its packets yet" };
}

function deathOf(held: Held | undefined, isKept: boolean): ClosedMoment {
  if (held?.state !== "enforced") return isKept ? KEPT_AT_DEATH : DEATH;
  return held.isDockerHeld ? HELD : NAMES_AT_DEATH;
}

function addressesOf({ state, reason, open, refused }: Held): PolicyContainer["addresses"] {
  const shown = refused().slice(0, REFUSED_SHOWN).map(refusedText);
  return { state, reason: reason ?? null, open, refused: shown };
}

function refusedText({ address, protocol, port }: RefusedAddress): string {
  const text = addressText(address);
  const host = address.length === 4 ? text : `[${text}]`;
  return `${host}:${port}/${PROTOCOL_NAMES.get(protocol) ?? protocol}`;
}

function lastNames({ log }: Ports["policies"], ownerId: string): string[] {
  const last = log.read(NAMES_LISTED * TYPES_OF_ONE, 0, (id) => id === ownerId).toReversed();
  const names = last.flatMap(({ name }) => (name === null ? [] : [name]));
  return [...new Set(names)].slice(0, NAMES_LISTED);
}

function notServedReason(
  { decisionOf, attachmentOf }: ControlPorts["containers"],
  { id }: ContainerFact,
): string | undefined {
  const decision = decisionOf(id);
  if (decision?.kind === "skip") return decision.reason;
  const state = attachmentOf(id)?.state;
  return state?.kind === "failed" && !state.isHeld ? state.reason : undefined;
}

/** What policies have refused, or would have, as programs read it. */
export function refusalReport(
  { number, containerId, name, type, refusal, count, firstMs, lastMs }: LoggedRefusal,
  facts: ReadonlyMap<string, ContainerFact>,
): PolicyRefusal {
  const fact = facts.get(containerId);
  const { project, service } = fact === undefined ? { project: null, service: null } : namedContainer(fact);
  const { policy, reason, isEnforced, text } = refusal;
  return {
    number,
    time: new Date(firstMs).toISOString(),
    last: new Date(lastMs).toISOString(),
    count,
    container: fact?.name ?? containerId.slice(0, 12),
    containerId,
    project,
    service,
    name,
    type: typeName(type),
    verdict: isEnforced ? "refused" : "would-refuse",
    policy: policy.name,
    mode: policy.mode,
    reason,
    because: text,
  };
}
