/**
 * What commands say of a swarm. The doctor says whether gossip has brought this machine what runs on swarm networks. Names of other machines are only as good
 * as that. One machine can compare its gossip with its own containers and, if it is a manager, with the tasks that run. A
 * worker that knows only itself tries to reach the managers at the port of gossip.
 */
import type { AddressOwner, SwarmPlace } from "../../api/names.ts";
import type { ContainerStatus } from "../../api/status.ts";
import { counted } from "../../base/lib/text.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { type Finding, findingsOf } from "../../base/model/finding.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { CheckedContainers, ContainerColumn } from "../contract.ts";
import { type SwarmList, type TaskJson, readManagers, readNetwork, readTasks, swarmList } from "./engine-lists.ts";
import { SWARM_LIMITS } from "./limits.ts";
import { tasksText } from "./swarm-lists.ts";

export const checks = {
  swarm: {
    title: "swarm",
    examines: "whether gossip knows this machine's containers on swarm networks and, on a manager, all running tasks",
  },
};
const finding = findingsOf(checks);

/** Gossip may take this long. */
const SETTLED_MS = 15_000;
const SHOWN = 3;
const REMEDY =
  "Check that the machines reach each other at 7946/tcp, 7946/udp and 4789/udp (docker node ls), and run the doctor again.";

const GOSSIP_PORT = 7946;
const MANAGERS_TRIED = 3;

/** Columns of `dns11 ps`. */
export function columns(containers: readonly ContainerStatus[]): readonly ContainerColumn[] {
  if (containers.every(({ swarm }) => swarm === undefined)) return [];
  const cell = ({ swarm = [] }: ContainerStatus): string => swarm.map((each) => serviceText(each)).join("; ") || "-";
  return [{ title: "SWARM", min: 16, drop: 5, cell }];
}

/** The service, its virtual address, and its tasks. */
function serviceText(place: SwarmPlace): string {
  const { service, network, virtualAddress } = place;
  return `${service ?? place.name} on ${network}: ${virtualAddress === null ? "" : `${virtualAddress}, `}${tasksText(place)}`;
}

export function ownerText({ container, swarm }: AddressOwner): string | undefined {
  if (swarm === undefined) return undefined;
  if (swarm.machine === null) return `swarm service ${container}, ${tasksText(swarm)}`;
  return `${container} on machine ${swarm.machine}`;
}

type Checked = Pick<CheckedContainers, "facts" | "networkOf" | "api" | "isReached">;

/** Finds nothing without containers on swarm networks. */
export async function containersFindings(checked: Checked): Promise<readonly Finding[]> {
  return await swarmFindings(checked, Date.now());
}

export async function swarmFindings(checked: Checked, nowMs: number): Promise<readonly Finding[]> {
  const { facts, networkOf, api } = checked;
  const ids = [...new Set(facts.flatMap(({ endpoints }) => endpoints.map(({ networkId }) => networkId)))];
  const networks = ids.flatMap((id) => {
    const network = networkOf(id);
    return network?.swarm === undefined || network.swarm.isIngress ? [] : [network];
  });
  if (networks.length === 0) return [];
  try {
    const tasks = await readTasks(api);
    const findings: Finding[] = [];
    for (const network of networks.slice(0, SWARM_LIMITS.networks)) {
      const json = await readNetwork(api, network.id);
      if (json === undefined) continue;
      const expected = [...ownOn(network.id, facts, nowMs), ...runningOn(network.id, tasks ?? [], nowMs)];
      const list = swarmList(network.id, json);
      const found = judge(network.name, list, expected, tasks !== undefined);
      const isAlone = tasks === undefined && found.state === "ok" && machinesIn(list) < 2;
      findings.push(isAlone ? await judgeAlone(network.name, found, checked) : found);
    }
    return findings;
  } catch (error) {
    return [finding("swarm", "unknown", reasonOf(error))];
  }
}

/** An address that gossip must know by now, and whose it is. */
interface Expected {
  readonly address: string;
  readonly what: string;
}

function judge(network: string, { services }: SwarmList, expected: readonly Expected[], isManager: boolean): Finding {
  const tasks = services.flatMap((service) => service.tasks);
  const known = new Set(tasks.map(({ address }) => address));
  const missing = new Map(expected.flatMap(({ address, what }) => (known.has(address) ? [] : [[address, what]])));
  if (missing.size > 0) {
    const shown = [...missing].slice(0, SHOWN).map(([address, what]) => `${what} (${address})`);
    const more = missing.size > SHOWN ? ` and ${missing.size - SHOWN} more` : "";
    const detail = `network "${network}": the machines disagree, gossip here lacks ${shown.join(", ")}${more}`;
    return finding("swarm", "warning", detail, REMEDY);
  }
  const machines = machinesIn({ services });
  const named = services.filter(({ name }) => name !== "").length;
  const compared = isManager ? "as the manager has them" : "with all of this machine's";
  const all = `${counted(named, "service")} and ${counted(tasks.length, "task")} or container${tasks.length === 1 ? "" : "s"}`;
  return finding("swarm", "ok", `network "${network}": ${all} on ${counted(machines, "machine")}, ${compared}`);
}

function machinesIn({ services }: Pick<SwarmList, "services">): number {
  return new Set(services.flatMap(({ tasks }) => tasks.map(({ host }) => host))).size;
}

/** A worker does not know what should run elsewhere: that it knows only itself may be right. */
async function judgeAlone(network: string, found: Finding, { api, isReached }: Checked): Promise<Finding> {
  const managers = (await readManagers(api)).slice(0, MANAGERS_TRIED);
  const reached = await Promise.all(managers.map(async (each) => await isReached(each, GOSSIP_PORT)));
  const cutOff = managers.filter((_, at) => reached[at] !== true);
  if (cutOff.length === 0)
    return finding("swarm", "ok", `${found.detail}; what should run on others only a manager knows`);
  const detail = `network "${network}": only this machine is known here, and gossip does not reach ${cutOff.join(", ")} at ${GOSSIP_PORT}/tcp: names of other machines do not resolve`;
  return finding("swarm", "warning", detail, REMEDY);
}

/** A container that is starting, or not healthy, has no name yet. */
function ownOn(networkId: string, facts: readonly ContainerFact[], nowMs: number): Expected[] {
  return facts.flatMap(({ name, startedAt, health, endpoints }) => {
    const isSettled = nowMs - Date.parse(startedAt) > SETTLED_MS && (health === undefined || health === "healthy");
    const address = endpoints.find((each) => each.networkId === networkId)?.ipv4;
    return isSettled && address !== undefined ? [{ address, what: name }] : [];
  });
}

function runningOn(networkId: string, tasks: readonly TaskJson[], nowMs: number): Expected[] {
  return tasks.flatMap(({ ID: id = "", Status: status, DesiredState: desired, NetworksAttachments: attachments }) => {
    const isSettled = nowMs - Date.parse(status?.Timestamp ?? "") > SETTLED_MS;
    if (status?.State !== "running" || desired !== "running" || !isSettled) return [];
    const own = (attachments ?? []).find(({ Network: network }) => network?.ID === networkId);
    return (own?.Addresses ?? []).map((text) => ({
      address: text.split("/")[0] ?? "",
      what: `task ${id.slice(0, 12)}`,
    }));
  });
}
