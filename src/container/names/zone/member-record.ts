/**
 * MemberRecord: a container as its machine writes it to etcd for all others: the key, below that of the machine, and
 * the value. A value is a record of SkyDNS's schema, with more fields, so that other readers have its address and port.
 */
import { jsonObject } from "../source/json-object.ts";
import { LIMITS } from "../../../base/limits.ts";
import { addressText, isHostScoped, plain } from "../../../base/model/address.ts";
import { type ServicePort, namedPort } from "../../facts/service-port.ts";
import { type Addresses, MEMBER_REACHES } from "./member.ts";
import { type InsideSwarm, type PublishedMember, SWARM_NETWORKS_MAX } from "./published-member.ts";

/** A label of a name, without wildcards. */
const LABEL = /^(?!any$)[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/;
const ID = /^[0-9a-f]{12}$/;
const NETWORK = /^[a-z0-9]{1,64}$/;
const HOSTS_MAX = 4;
const TEXT_CHARS = 300;
const LABEL_CHARS = 63;

/** Those that are ready are below `svc`, as in names. */
const BRANCHES = ["svc", "endpoints"] as const;
const PATH_LABELS = 4;

/** Its key below that of the machine. Throws an Error if it cannot be one. */
export function keyOf({ project, service, id, isReady }: PublishedMember): string {
  const path = [isReady ? "svc" : "endpoints", project, service, id];
  checkPath(path);
  return path.join("/");
}

export function valueOf(member: PublishedMember, machine: string, ttlSeconds: number): string {
  const addresses = [...member.v4, ...member.v6].map((each) => addressText(each));
  const { hosts, ports, reach, inside } = member;
  const [first] = ports;
  return JSON.stringify({
    host: addresses[0],
    ...(first !== undefined && { port: first.number }),
    ttl: ttlSeconds,
    machine,
    reach,
    addresses,
    hosts: hosts.slice(0, HOSTS_MAX),
    ports: ports.map((port) => portText(port)),
    ...(inside !== undefined && { inside: insideFields(inside) }),
  });
}

function insideFields({ ports, networks }: InsideSwarm): object {
  const addresses = ({ v4, v6 }: Addresses): string[] => [...v4, ...v6].map((each) => addressText(each));
  return {
    ports: ports.map((port) => portText(port)),
    networks: Object.fromEntries(networks.map((each) => [each.networkId, addresses(each)])),
  };
}

/** What it is called on other machines: members on several may be number 1 of their service. */
export function hostOnMachine({ hosts: [host], id }: Pick<PublishedMember, "hosts" | "id">, machine: string): string {
  const name = `${host ?? id}-${machine}`;
  return name.length > LABEL_CHARS ? id : name;
}

/** Writes a port as labels do. */
export function portText({ name, protocol, number }: ServicePort): string {
  return `${name}=${number}/${protocol}`;
}

/** Reads what a machine has written. `path`: its key below that of the machine. Throws an Error with the reason. */
export function readMember(path: readonly string[], value: Buffer | undefined): PublishedMember {
  checkPath(path);
  const [branch, project = "", service = "", id = ""] = path;
  const fields = readFields(value);
  const addresses = addressesIn(fields, "addresses");
  const reach = MEMBER_REACHES.find((each) => each === fields["reach"]);
  if (reach === undefined) throw new Error(`its reach is not one of ${MEMBER_REACHES.join(", ")}`);
  const inside = fields["inside"] === undefined ? undefined : insideIn(fieldsIn(fields, "inside"));
  if (reach === "swarm" && inside === undefined) throw new Error("it is on no swarm network");
  return {
    project,
    service,
    id,
    isReady: branch === "svc",
    hosts: listIn(fields, "hosts", HOSTS_MAX).map((text) => labelIn(text)),
    ports: listIn(fields, "ports", LIMITS.labelPorts).map((text) => portIn(text)),
    reach,
    inside,
    ...addresses,
  };
}

function insideIn(fields: Fields): InsideSwarm {
  const networks = fieldsIn(fields, "networks");
  const ids = Object.keys(networks);
  if (ids.length === 0 || ids.length > SWARM_NETWORKS_MAX || !ids.every((id) => NETWORK.test(id)))
    throw new Error(`its networks are not the ids of at most ${SWARM_NETWORKS_MAX}`);
  return {
    ports: listIn(fields, "ports", LIMITS.labelPorts).map((text) => portIn(text)),
    networks: ids.map((networkId) => ({ networkId, ...addressesIn(networks, networkId) })),
  };
}

/** The record of the machine itself. */
export function readMachine(value: Buffer | undefined): Addresses {
  const addresses = listIn(readFields(value), "addresses", 2).map((text) => addressIn(text));
  return { v4: addresses.filter(({ length }) => length === 4), v6: addresses.filter(({ length }) => length === 16) };
}

export function isMachineName(text: string): boolean {
  return LABEL.test(text);
}

function checkPath(path: readonly string[]): void {
  const [branch, project = "", service = "", id = ""] = path;
  const isPath = path.length === PATH_LABELS && BRANCHES.some((each) => each === branch);
  if (!isPath || !LABEL.test(project) || !LABEL.test(service) || !ID.test(id))
    throw new Error("its key is not svc or endpoints, a project, a service and an id");
}

type Fields = Readonly<Record<string, unknown>>;

function readFields(value: Buffer | undefined): Fields {
  if (value === undefined || value.length > LIMITS.etcdMemberBytes)
    throw new Error(`the value has more than ${LIMITS.etcdMemberBytes} bytes`);
  return jsonObject(value);
}

function listIn(fields: Fields, key: string, max: number): readonly string[] {
  const field = fields[key] ?? [];
  const isList = Array.isArray(field) && field.length <= max;
  if (isList && field.every((each) => typeof each === "string" && each.length <= TEXT_CHARS)) return field as string[];
  throw new Error(`its ${key} are not a list of at most ${max} strings`);
}

function fieldsIn(fields: Fields, key: string): Fields {
  const field = fields[key];
  if (typeof field === "object" && field !== null && !Array.isArray(field)) return field as Fields;
  throw new Error(`its ${key} is not a JSON object`);
}

/** One of a family, and one at least. */
function addressesIn(fields: Fields, key: string): Addresses {
  const addresses = listIn(fields, key, 2).map((text) => addressIn(text));
  const v4 = addresses.filter(({ length }) => length === 4);
  const v6 = addresses.filter(({ length }) => length === 16);
  if (addresses.length === 0 || v4.length > 1 || v6.length > 1) throw new Error("it has not one address of a family");
  return { v4, v6 };
}

function addressIn(text: string): Uint8Array {
  const bytes = plain(text);
  if (bytes === undefined || text.includes("%") || isHostScoped(text))
    throw new Error("an address of it is none that means one machine");
  return bytes;
}

function labelIn(text: string): string {
  if (LABEL.test(text)) return text;
  throw new Error("a host name of it is no label of a name");
}

function portIn(text: string): ServicePort {
  const port = namedPort(text);
  if (port !== undefined) return port;
  throw new Error("a port of it is not NAME=PORT/PROTOCOL");
}
