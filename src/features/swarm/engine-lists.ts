/**
 * EngineLists: what an engine lists of a swarm network: its services and their tasks on all machines, as gossip has them. What is in them
 * was written by other machines: names and addresses that cannot be any are left out, and so is what is too much.
 */
import { Members, type Shape } from "../../base/lib/json-scanner.ts";
import { LIMITS } from "../../base/limits.ts";
import { addressBytes } from "../../base/model/address.ts";
import type { EngineCore } from "../contract.ts";
import { SWARM_LIMITS } from "./limits.ts";

interface SwarmTask {
  /** SERVICE.SLOT.ID, or SERVICE.NODE.ID of a global service; the name of a container that was attached by hand. */
  readonly name: string;
  readonly address: string;
  /** The machine that it runs on. */
  readonly host: string;
}

export interface SwarmService {
  /** Empty for containers that were attached by hand. */
  readonly name: string;
  /** Undefined for a service without one (endpoint mode dnsrr). */
  readonly virtualAddress: string | undefined;
  readonly aliases: readonly string[];
  readonly tasks: readonly SwarmTask[];
}

export interface SwarmList {
  readonly services: readonly SwarmService[];
  /** Services and tasks that were left out, because there are too many. */
  readonly omitted: number;
}

/** `GET /networks/{id}?verbose=true` */
interface VerboseNetworkJson {
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

/** `GET /info`, as far as it says of managers. */
interface ManagersJson {
  readonly Swarm?: {
    readonly RemoteManagers?: readonly { readonly Addr?: string }[] | null;
    readonly NodeAddr?: string;
  };
}

interface ServiceNetworkJson {
  readonly Target?: string;
  readonly Aliases?: readonly string[] | null;
}

const VERBOSE_NETWORK_SHAPE = {
  Services: new Members({ VIP: true, Tasks: { Name: true, EndpointIP: true, Info: { "Host IP": true } } }),
} as const;

const SERVICE_NETWORK = { Target: true, Aliases: true } as const;
const SERVICE_SHAPE = {
  Spec: { Name: true, Networks: SERVICE_NETWORK, TaskTemplate: { Networks: SERVICE_NETWORK } },
  Endpoint: { VirtualIPs: { NetworkID: true, Addr: true } },
} as const;

const TASK_SHAPE = {
  ID: true,
  DesiredState: true,
  Status: { State: true, Timestamp: true },
  NetworksAttachments: { Network: { ID: true }, Addresses: true },
} as const;

const MANAGERS_SHAPE = { Swarm: { RemoteManagers: { Addr: true }, NodeAddr: true } } as const;

type Api = Pick<EngineCore["api"], "readOne" | "readList">;

/** Undefined without such a network. */
export async function readNetwork(api: Api, id: string): Promise<VerboseNetworkJson | undefined> {
  return await api.readOne<VerboseNetworkJson>({
    ...{ path: `/networks/${encodeURIComponent(id)}?`, options: { verbose: true }, shape: VERBOSE_NETWORK_SHAPE },
    ...{ notHere: [404], bytesMax: SWARM_LIMITS.listBytes },
  });
}

/** Undefined unless the engine is a manager. */
export async function readServices(api: Api): Promise<readonly ServiceJson[] | undefined> {
  return await readList<ServiceJson>(api, "/services", SERVICE_SHAPE);
}

/** The tasks that should run; undefined unless the engine is a manager. */
export async function readTasks(api: Api): Promise<readonly TaskJson[] | undefined> {
  const filters = JSON.stringify({ "desired-state": ["running"] });
  return await readList<TaskJson>(api, "/tasks?", TASK_SHAPE, { filters });
}

/** The addresses of the other managers, as the engine knows them. */
export async function readManagers(api: Api): Promise<readonly string[]> {
  const request = { path: "/info", shape: MANAGERS_SHAPE, silentMs: LIMITS.listMs };
  const { Swarm: swarm } = (await api.readOne<ManagersJson>(request)) ?? {};
  const addresses = (swarm?.RemoteManagers ?? []).flatMap(({ Addr: text = "" }) => hostOf(text) ?? []);
  return addresses.filter((each) => each !== swarm?.NodeAddr);
}

/** What other machines have written may be long. */
async function readList<T>(
  api: Api,
  path: string,
  shape: Shape,
  options: object = {},
): Promise<readonly T[] | undefined> {
  return await api.readList<T>({ path, shape, options, notHere: [406, 503], bytesMax: SWARM_LIMITS.listBytes });
}

/** Reads ADDRESS:PORT, or [ADDRESS]:PORT. */
function hostOf(text: string): string | undefined {
  return /^\[?([0-9a-f.:]+?)\]?:\d+$/i.exec(text)?.[1];
}

const NAME_CHARS = 253;

/** `services`: those of a manager, which also knows services without a healthy task, and aliases. */
export function swarmList(
  networkId: string,
  { Services: listed }: VerboseNetworkJson,
  services: readonly ServiceJson[] = [],
): SwarmList {
  const byName = new Map<string, SwarmService>();
  let tasksLeft: number = SWARM_LIMITS.tasks;
  let omitted = 0;
  const add = (service: SwarmService): void => {
    if (byName.has(service.name) || byName.size < SWARM_LIMITS.services) byName.set(service.name, service);
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
