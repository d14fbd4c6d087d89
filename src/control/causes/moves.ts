/**
 * Moves: containers that have another address than a while ago. Who resolved the name before and not since may still use the
 * old address.
 */
import type { Cause } from "../../api/causes.ts";
import type { FormerAddress } from "../../container/registry/former-addresses.ts";
import { ageText } from "../../base/lib/age.ts";
import { commandOf } from "../../base/lib/command-line.ts";
import type { KnownContainers } from "./known-containers.ts";
import { type Move, cause } from "./situation.ts";

/** A container that was created again under its name has moved, too. */
export function movesOf(former: readonly FormerAddress[], known: KnownContainers): Move[] {
  return former.flatMap(({ container, networkName, address: from, atMs }) => {
    const isSix = from.includes(":");
    const owner = known
      .places(container.toLowerCase())
      .find((place) => place.container.name === container && place.container.ended === undefined)?.container;
    const endpoint = owner?.endpoints.find((each) => each.networkName === networkName);
    const to = isSix ? endpoint?.ipv6 : endpoint?.ipv4;
    if (owner === undefined || endpoint === undefined || to === undefined || to === from) return [];
    return [{ containerId: owner.id, container, networkName, names: endpoint.names, from, to, atMs }];
  });
}

/** `clients`: containers that resolved the name before the move and not since. */
export function moveCause(name: string, move: Move, clients: readonly string[], agoMs: number): Cause {
  const { container, from, to } = move;
  const others = clients.join(", ");
  const sentence =
    `"${name}" moved from ${from} to ${to} ${ageText(agoMs)} ago (container ${container}), and ${others} ` +
    `${clients.length === 1 ? "has" : "have"} not queried it since: programs that keep addresses still connect to ${from}`;
  return cause("moved", sentence, { about: container, fix: commandOf("docker", "restart", ...clients) });
}
