/**
 * SwarmJson: the engine's lists of a swarm network as facts. What is in them was written by other machines: names and
 * addresses that cannot be any are left out, and so is what is too much.
 */
import { Members } from "../../base/lib/json-scanner.ts";
import { LIMITS } from "../../base/limits.ts";
import { addressBytes } from "../../base/model/address.ts";
import type { SwarmList, SwarmService, SwarmTask } from "../facts/swarm-fact.ts";

/** `GET /networks/{id}?verbose=true` */
export interface VerboseNetworkJson {
  readonly Services?: Readonly<Record<string, VerboseServiceJson | null>> | null;
}

interface VerboseServiceJson {
  readonly VIP?: string | null;
  readonly Tasks?: readonly VerboseTaskJson[] | null;
}

interface VerboseTaskJson {
  readonly Name?: string;
  readonly EndpointIP?: string;
  readonly Info?: Readonly<Record<string, string>> | null;
}

/** One entry of `GET /services`, which managers have. */
export interface ServiceJson {
  readonly Spec?: {
    readonly Name?: string;
    readonly Networks?: readonly ServiceNetworkJson[] | null;
    readonly TaskTemplate?: { readonly Networks?: readonly ServiceNetworkJson[] | null };
  };
  readonly Endpoint?: {
    readonly VirtualIPs?: readonly { readonly NetworkID?: string; readonly Addr?: string }[] | null;
  };
}

/** One entry of `GET /tasks`, which managers have. */
export interface TaskJson {
  readonly ID?: string;
  readonly DesiredState?: string;
  readonly Status?: { readonly State?: string; readonly Timestamp?: string };
  readonly NetworksAttachments?:
    | readonly { readonly Network?: { readonly ID?: string }; readonly Addresses?: readonly string[] | null }[]
    | null;
}

interface ServiceNetworkJson {
  readonly Target?: string;
  readonly Aliases?: readonly string[] | null;
}

export const VERBOSE_NETWORK_SHAPE = {
  Services: new Members({ VIP: true, Tasks: { Name: true, EndpointIP: true, Info: { "Host IP": true } } }),
} as const;

const SERVICE_NETWORK = { Target: true, Aliases: true } as const;
export const SERVICE_SHAPE = {
  Spec: { Name: true, Networks: SERVICE_NETWORK, TaskTemplate: { Networks: SERVICE_NETWORK } },
  Endpoint: { VirtualIPs: { NetworkID: true, Addr: true } },
} as const;

export const TASK_SHAPE = {
  ID: true,
  DesiredState: true,
  Status: { State: true, Timestamp: true },
  NetworksAttachments: { Network: { ID: true }, Addresses: true },
} as const;

const NAME_CHARS = 253;

/** `services`: those of a manager, which also knows services without a healthy task, and aliases. */
export function swarmList(
  networkId: string,
  { Services: listed }: VerboseNetworkJson,
  services: readonly ServiceJson[] = [],
): SwarmList {
  const byName = new Map<string, SwarmService>();
  let tasksLeft: number = LIMITS.swarmTasks;
  let omitted = 0;
  const add = (service: SwarmService): void => {
    if (byName.has(service.name) || byName.size < LIMITS.swarmServices) byName.set(service.name, service);
    else omitted++;
  };
  for (const [name, json] of Object.entries(listed ?? {})) {
    if (name.length > NAME_CHARS) continue;
    // The engine lists them in no order.
    const all = (json?.Tasks ?? []).flatMap(taskOf).toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
    const tasks = all.slice(0, tasksLeft);
    tasksLeft -= tasks.length;
    omitted += all.length - tasks.length;
    add({ name, virtualAddress: addressOf(json?.VIP), aliases: [], tasks });
  }
  for (const { Spec: spec, Endpoint: endpoint } of services) {
    const { Name: name = "" } = spec ?? {};
    const virtual = endpoint?.VirtualIPs?.find(({ NetworkID: id }) => id === networkId);
    const network = (spec?.TaskTemplate?.Networks ?? spec?.Networks ?? []).find(({ Target: id }) => id === networkId);
    if (name === "" || name.length > NAME_CHARS || (virtual === undefined && network === undefined)) continue;
    const known = byName.get(name);
    const aliases = (network?.Aliases ?? []).filter((each) => each.length <= NAME_CHARS).slice(0, LIMITS.labelNames);
    const virtualAddress = known?.virtualAddress ?? addressOf(virtual?.Addr?.split("/")[0]);
    add({ name, virtualAddress, aliases, tasks: known?.tasks ?? [] });
  }
  return { services: [...byName.values()], omitted };
}

function taskOf({ Name: name = "", EndpointIP: ip, Info: info }: VerboseTaskJson): SwarmTask[] {
  const address = addressOf(ip);
  if (name === "" || name.length > NAME_CHARS || address === undefined) return [];
  return [{ name, address, host: addressOf(info?.["Host IP"]) ?? "" }];
}

function orderOf({ name, address }: SwarmTask): string {
  return `${name} ${address}`;
}

/** Without one, engines write nothing, or "<nil>". */
function addressOf(text: string | null | undefined): string | undefined {
  return text != null && addressBytes(text) !== undefined ? text : undefined;
}
