/**
 * LeaveServing: the ways out of a namespace in which sockets and rules stay for another process, and which namespace that is.
 */
import type { Refusing } from "../../base/model/held-namespace.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import type { NamespaceId } from "../namespace/namespace-runner.ts";
import type { NamespaceClaim } from "../namespace/proof.ts";
import type { NamespaceSockets } from "../namespace/sockets.ts";
import type { AttachmentParts, Endpoint } from "./attachment-parts.ts";
import type { KeeperHold } from "./keeper-hold.ts";
import type { Serving } from "./serving.ts";
import { setImmediate as nextRound, setTimeout as sleep } from "node:timers/promises";
import { LIMITS } from "../../base/limits.ts";

/** Reads no more queries. The sockets have new descriptors then. */
export function pauseServing(serving: Serving): void {
  const { bound, pairs } = serving;
  const descriptors = serving.endpoint.pause();
  serving.bound = bound.map((pair, index) => ({ ...pair, ...descriptors[index] }));
  serving.pairs = pairs.map((pair) => serving.bound[bound.indexOf(pair)] as NamespaceSockets);
}

/** Lets go of what another process has, too. */
export function abandonServing(serving: Serving): void {
  serving.isEnded = true;
  serving.endpoint.close();
  serving.passage.end();
  serving.rules.close();
}

/** Has the keeper refuse all further queries, and answers those that were read. Serves on if the keeper cannot. */
export async function leaveServing(
  serving: Serving,
  hold: KeeperHold,
  refusing: Refusing | undefined,
): Promise<boolean> {
  pauseServing(serving);
  hold.renew();
  const { held } = hold;
  const { extra } = serving;
  if (held === undefined || (await refusing?.begin(held, () => extra?.close())) !== true) {
    serving.endpoint.resume();
    return false;
  }
  hold.release();
  await untilQuiet(serving.endpoint);
  extra?.leave();
  return true;
}

/** The namespace of a container that is not attached; undefined if the container has ended. */
export function namespaceOf(claim: NamespaceClaim, prove: AttachmentParts["prove"]): NamespaceId | undefined {
  try {
    const { fd, id } = prove(claim);
    closeQuietly(fd);
    return id;
  } catch {
    return undefined;
  }
}

/** Waits until a namespace whose queries go to Docker's resolver again has its last answers from us. */
export async function untilQuiet(endpoint: Endpoint): Promise<void> {
  const deadlineMs = performance.now() + LIMITS.drainMs;
  // Queries that arrived before the rules changed still wait in the socket: leave once nothing has come for a while.
  let before;
  do {
    before = endpoint.counters["queries"];
    await sleep(LIMITS.drainQuietMs);
    // Timers run before sockets: after a long call our sockets have not been read yet.
    await nextRound();
  } while (
    (endpoint.counters["queries"] !== before || endpoint.inFlight > 0 || endpoint.tcpClientPorts.length > 0) &&
    performance.now() < deadlineMs
  );
}
