/**
 * UnwatchedContainers: containers that have container names but whose queries do not reach dns11: it is not asked, or their programs end
 * before they have asked, over and over. Their failures are in no table, so that a report without them would be wrong by silence.
 */
import type { UnwatchedContainer } from "../../api/failures.ts";
import type { Cause } from "../../api/causes.ts";
import { failureText } from "../../container/attach/attachment-state.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { resolverCauses } from "../causes/client-causes.ts";
import { clientCause } from "../causes/broken-clients.ts";
import { commandOf } from "../../base/lib/text.ts";
import { runningContainer } from "../causes/known-container.ts";
import { cause } from "../causes/situation.ts";
import { gatherInSlices } from "../../base/lib/slices.ts";
import type { ControlPorts } from "../situation/ports.ts";
import { type Situations, mountedResolvConf, resolversOf } from "../situation/situations.ts";

type Ports = Pick<ControlPorts, "containers">;

/** Looks at the containers that are wanted. It does so in slices, because of each a file is read. */
export async function unwatchedContainers(
  ports: Ports,
  situations: Situations,
  isWanted: (containerId: string) => boolean,
): Promise<UnwatchedContainer[]> {
  return await gatherInSlices(eachUnwatched(ports, situations, isWanted));
}

function* eachUnwatched(
  { containers }: Ports,
  situations: Situations,
  isWanted: (containerId: string) => boolean,
): Generator<UnwatchedContainer | undefined> {
  for (const container of situations.known.all) {
    yield undefined;
    const isInLoop = container.ended === undefined || container.ended.state === "restarting";
    if (!isInLoop || !isWanted(container.id)) continue;
    const broken = clientCause(container, situations.known, Date.now());
    if (broken !== undefined) yield { container: container.name, cause: broken };
  }
  for (const fact of [...containers.facts.values()]) {
    yield undefined;
    if (!isWanted(fact.id)) continue;
    const decision = containers.decisionOf(fact.id);
    const state = containers.attachmentOf(fact.id)?.state;
    const reason =
      decision?.kind === "skip"
        ? decision.code === "quarantined" && decision.reason
        : state?.kind === "failed" && failureText(state);
    if (typeof reason === "string") yield { container: fact.name, cause: notServedCause(fact, reason) };
    // Others are not to be served.
    if (decision?.kind !== "serve" || state?.kind !== "attached") continue;
    // It has a resolv.conf that dns11 itself has changed.
    if (containers.ofFeatures.status(fact.id).node !== undefined) continue;
    const resolvConf = situations.resolvConfOf(fact, fact);
    const mounted = mountedResolvConf(fact, fact);
    const client = runningContainer(fact);
    const resolvers = resolversOf(fact);
    const [first] = resolverCauses({ client, mountedResolvConf: mounted, resolvConf, resolvers });
    // One whose queries arrive has mounted a file that lists dns11's address.
    const isSeen = mounted !== undefined && (containers.attachmentOf(fact.id)?.endpoint?.counters["queries"] ?? 0) > 0;
    if (first !== undefined && !isSeen) yield { container: fact.name, cause: first };
  }
}

export function notServedCause({ name }: ContainerFact, reason: string): Cause {
  return cause("not-served", `dns11 does not serve "${name}": ${reason}`, { fix: commandOf("dns11", "doctor", name) });
}
