import type { EgressConnection, EgressContainer, EgressOwner, EgressReport } from "../../api/egress.ts";
import { Fault } from "../../base/lib/fault.ts";
import { gatherInSlices } from "../../base/lib/slices.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { namedContainer, sharedOwner } from "../../control/situation/find-container.ts";
import type { Routes } from "../../control/server/http.ts";
import { refuseUnknown } from "../../control/server/parameters.ts";
import { COMPOSE_KEYS, composeFilterOf } from "../../control/situation/address-owners.ts";
import type { ControlPorts } from "../../control/situation/ports.ts";
import type { Recording } from "./recording.ts";

const PROTOCOLS: ReadonlyMap<number, string> = new Map([
  [1, "icmp"],
  [6, "tcp"],
  [17, "udp"],
  [33, "dccp"],
  [58, "icmpv6"],
  [132, "sctp"],
]);

interface Filter {
  /** By name or the beginning of the ID. */
  readonly container: string | undefined;
  readonly acceptsId: ((containerId: string) => boolean) | undefined;
}

/** `hasNames`: whether names may be shown. */
export function egressRoutes(ports: ControlPorts, recording: Recording | undefined, hasNames: () => boolean): Routes {
  return {
    "GET /v1/egress": async ({ query }) => {
      if (recording === undefined)
        throw new Fault("EGRESS_OFF", "Connections are not recorded inside a KIND node", {
          remedy: "Run dns11 on the machine of the Docker daemon.",
        });
      refuseUnknown(query, ["container", ...COMPOSE_KEYS]);
      const acceptsId = (await composeFilterOf(query, ports))?.acceptsId;
      const filter = { container: query.get("container") || undefined, acceptsId };
      const containers = await containersOf(ports.containers.facts, recording, filter);
      return { hasNames: hasNames(), leavesOutAnswers: recording.tellsAnswers, containers } satisfies EgressReport;
    },
  };
}

/** Throws a Fault if nothing is recorded, or if there is no such container. */
async function containersOf(
  facts: ReadonlyMap<string, ContainerFact>,
  recording: Recording,
  filter: Filter,
): Promise<readonly EgressContainer[]> {
  if (!recording.isOn)
    throw new Fault("EGRESS_OFF", "Connections are not recorded, because egress is off", {
      remedy: "Set `egress: true` in the settings file, then run `dns11 reload`.",
    });
  if (recording.problem !== undefined)
    throw new Fault("EGRESS_FAILED", `Connections are not recorded: ${recording.problem}`, {
      remedy: "It needs Linux 5.12 or later with nf_tables; Linux 5.16 to tell answers by UDP.",
    });
  await recording.refresh((id, name) => matches(filter, id, name, facts.get(id)));
  const recorded = new Map([...recording.list()].map((each) => [each.id, each]));
  const owners = new AddressOwners(facts);
  const ids = [...new Set([...facts.keys(), ...recorded.keys()])];
  /** A container may have a thousand connections, and all together a hundred thousand. */
  function* eachContainer(): Generator<EgressContainer | undefined> {
    for (const id of ids) {
      const fact = facts.get(id);
      const known = recorded.get(id);
      const name = fact?.name ?? known?.name ?? id.slice(0, 12);
      if (!matches(filter, id, name, fact)) continue;
      const connections: EgressConnection[] = [];
      for (const { address, protocol, port, names, firstMs, lastMs, count } of known?.history.list() ?? []) {
        connections.push({
          address,
          protocol: PROTOCOLS.get(protocol) ?? String(protocol),
          port: port === 0 ? null : port,
          names,
          owner: owners.of(address, fact),
          first: new Date(firstMs).toISOString(),
          last: new Date(lastMs).toISOString(),
          count,
        });
        yield undefined;
      }
      const missing = fact === undefined ? [] : recording.missingOf(id);
      const place = fact === undefined ? undefined : namedContainer(fact);
      const missingSinceMs = known?.history.missingSinceMs;
      yield {
        container: name,
        containerId: id,
        project: place?.project ?? null,
        service: place?.service ?? null,
        isRunning: fact !== undefined,
        sharedWith: (fact && sharedOwner(facts, fact)?.name) ?? null,
        missingSince: missingSinceMs === undefined ? null : new Date(missingSinceMs).toISOString(),
        notRecorded: missing.map(({ text }) => text),
        connections,
      };
    }
  }
  const report = await gatherInSlices(eachContainer());
  if (filter.container !== undefined && report.length === 0)
    throw new Fault(
      "NO_SUCH_CONTAINER",
      `No container is called "${filter.container}", and none that has ended lately`,
    );
  return report;
}

function matches({ container, acceptsId }: Filter, id: string, name: string, fact: ContainerFact | undefined): boolean {
  if (acceptsId?.(id) === false) return false;
  if (container === undefined) return true;
  return name === container || id.startsWith(container) || (fact && namedContainer(fact).service) === container;
}

/** Containers that have an address, and the host where it is a gateway. */
class AddressOwners {
  readonly #containers = new Map<string, { readonly name: string; readonly networkId: string }[]>();

  constructor(facts: ReadonlyMap<string, ContainerFact>) {
    for (const { name, endpoints } of facts.values()) {
      for (const { ipv4, ipv6, networkId } of endpoints) {
        for (const address of [ipv4, ipv6]) {
          if (address === undefined) continue;
          const owners = this.#containers.get(address) ?? [];
          owners.push({ name, networkId });
          this.#containers.set(address, owners);
        }
      }
    }
  }

  /** Networks may have the same subnet: only those of the client count, unless there is one owner. */
  of(address: string, client: ContainerFact | undefined): EgressOwner | null {
    const gateway = client?.endpoints.find(({ ipv4Gateway, ipv6Gateway }) =>
      [ipv4Gateway, ipv6Gateway].includes(address),
    );
    if (gateway !== undefined) return { kind: "host", name: gateway.networkName };
    const owners = this.#containers.get(address) ?? [];
    const near = owners.find(({ networkId }) => client?.endpoints.some((each) => each.networkId === networkId));
    const owner = near ?? (owners.length === 1 ? owners[0] : undefined);
    return owner === undefined ? null : { kind: "container", name: owner.name };
  }
}
