/**
 * MisleadingNames: names that resolve, but not to what their clients need. No query fails, so they are in no failure table:
 * they follow from what is known about containers, and from who has queried them lately.
 */
import { setImmediate as turn } from "node:timers/promises";

import type { MisleadingName } from "../api/failures.ts";
import { ambiguity, pausedCause } from "./causes/container-causes.ts";
import type { KnownContainer } from "./causes/known-container.ts";
import { moveCause, movesOf } from "./causes/moves.ts";
import { LastAnswers } from "./last-answers.ts";
import type { ControlPorts } from "./ports.ts";
import type { Situations } from "./situations.ts";

type Ports = Pick<ControlPorts, "containers" | "histories">;

/** A client that has not queried a name for longer is not listed. */
const RECENT_MS = 300_000;

/** For the clients on the networks of one container, or for all. */
export async function misleadingNames(
  ports: Ports,
  { known }: Situations,
  containerId: string | undefined,
): Promise<MisleadingName[]> {
  const running = known.all.filter(({ ended }) => ended === undefined);
  const clients = running.filter(({ id }) => containerId === undefined || id === containerId);
  const names = ambiguousNames(running, clients);
  const queried = new QueriedNames(ports, clients);
  for (const container of running.filter(({ isPaused }) => isPaused)) {
    for (const { name, network, clients: by } of await queried.of(container, (ageMs) => ageMs <= RECENT_MS)) {
      names.push({ name, network, containers: [container.name], clients: by, cause: pausedCause(container) });
    }
  }
  for (const move of movesOf(ports.containers.formerAddresses(), known)) {
    const agoMs = performance.now() - move.atMs;
    const container = running.find(({ name }) => name === move.container);
    const endpoints = container?.endpoints.filter(({ networkName }) => networkName === move.networkName) ?? [];
    if (container === undefined) continue;
    for (const { name, network, clients: by } of await queried.of({ ...container, endpoints }, (age) => age > agoMs)) {
      names.push({
        name,
        network,
        containers: [container.name],
        clients: by,
        cause: moveCause(name, move, by, agoMs),
      });
    }
  }
  return names;
}

/** Names of services of several projects on one network. */
function ambiguousNames(running: readonly KnownContainer[], clients: readonly KnownContainer[]): MisleadingName[] {
  const byName = new Map<string, KnownContainer[]>();
  for (const container of running) {
    if (container.compose === undefined) continue;
    const name = container.compose.service.toLowerCase();
    for (const { networkName, names } of container.endpoints) {
      if (!names.includes(name)) continue;
      const key = `${networkName}\n${name}`;
      byName.set(key, [...(byName.get(key) ?? []), container]);
    }
  }
  const networks = new Set(clients.flatMap(({ endpoints }) => endpoints.map(({ networkName }) => networkName)));
  return [...byName].flatMap(([key, owners]) => {
    const [network = "", name = ""] = key.split("\n");
    const cause = ambiguity(name, network, owners);
    if (cause === undefined || !networks.has(network)) return [];
    return [{ name, network, containers: owners.map((each) => each.name), clients: [], cause }];
  });
}

/** Which clients have resolved the names of a container, and how long ago. */
class QueriedNames {
  readonly #clients: readonly KnownContainer[];
  readonly #answers: LastAnswers;

  constructor({ histories }: Ports, clients: readonly KnownContainer[]) {
    this.#clients = clients;
    this.#answers = new LastAnswers(histories);
  }

  /** `isWanted` decides by the age of a client's last answer, in milliseconds. */
  async of(
    { id, endpoints }: KnownContainer,
    isWanted: (ageMs: number) => boolean,
  ): Promise<{ name: string; network: string; clients: string[] }[]> {
    const found = new Map<string, { name: string; network: string; clients: string[] }>();
    for (const { networkName: network, names } of endpoints) {
      for (const client of this.#clients) {
        if (client.id === id || !client.endpoints.some(({ networkName }) => networkName === network)) continue;
        for (const name of names) {
          const lastMs = this.#answers.of(client.id, name) ?? this.#answers.of(client.id, `${name}.${network}`);
          if (lastMs === undefined || !isWanted(performance.now() - lastMs)) continue;
          const entry = found.get(name) ?? { name, network, clients: [] };
          found.set(name, entry);
          if (!entry.clients.includes(client.name)) entry.clients.push(client.name);
        }
      }
      // Let pending queries run first.
      await turn();
    }
    return [...found.values()];
  }
}
