/**
 * BrokenClients: containers whose programs resolve nothing, whatever they look up: they do not run for long, or they are in the network
 * namespace of a container that is no longer there.
 */
import type { Cause } from "../../api/causes.ts";
import { commandOf } from "../../base/lib/command-line.ts";
import { sharedWith } from "../../container/facts/shared-network.ts";
import { crashCause } from "./crash-loops.ts";
import { endedCause, endedText } from "./ended.ts";
import { recreateCommand } from "./fixes.ts";
import type { KnownContainer } from "./known-container.ts";
import type { KnownContainers } from "./known-containers.ts";
import { cause } from "./situation.ts";

const SHORT_ID_LENGTH = 12;

/** Why programs in a container get no answer at all; undefined if nothing is known to be in their way. */
export function clientCause(
  container: KnownContainer,
  known: Pick<KnownContainers, "byId" | "all">,
  nowMs: number,
): Cause | undefined {
  const crashing = crashCause(undefined, container, nowMs);
  if (crashing !== undefined) return crashing;
  const { ended, name } = container;
  if (ended !== undefined) return endedCause(container, ended, `container ${name} ${endedText(ended, nowMs)}`);
  return sharingCause(container, known);
}

/**
 * A container shares the namespace that another one had when this one was started. If that one is made again or started again, it gets
 * a new one, and this one stays in the old one, in which Docker has removed everything.
 */
function sharingCause(container: KnownContainer, known: Pick<KnownContainers, "byId" | "all">): Cause | undefined {
  const { name, networkMode = "", startedMs = 0 } = container;
  const word = sharedWith(networkMode);
  if (word === undefined) return undefined;
  const other = known.byId(word) ?? known.all.find((each) => each.name === word || each.id.startsWith(word));
  const what = `container ${name} uses the network namespace of `;
  const then = "so nothing resolves there, and it has no network";
  const parts = { about: name, isBreaking: true };
  if (other === undefined) {
    const fix = recreateCommand(container) ?? null;
    const id = word.slice(0, SHORT_ID_LENGTH);
    const sentence = `${what}container ${id}, which is gone: it was removed or made again, and ${name} was not; ${then}`;
    if (fix !== null) return cause("namespace-gone", sentence, { ...parts, fix });
    return cause("namespace-gone", sentence, {
      ...parts,
      advice: `create ${name} again, with the container that is there now`,
    });
  }
  const restart = commandOf("docker", "restart", name);
  if (other.ended !== undefined) {
    const fix = `${commandOf("docker", "start", other.name)} && ${restart}`;
    return cause("namespace-gone", `${what}${other.name}, which does not run; ${then}`, { ...parts, fix });
  }
  if (startedMs === 0 || other.startedMs === undefined || startedMs >= other.startedMs) return undefined;
  const sentence = `${what}${other.name} as it was before that was started again; ${then}`;
  return cause("namespace-gone", sentence, { ...parts, fix: restart });
}
