import { wireLabels } from "../../base/dns/name.ts";
import { addressBytes } from "../../base/model/address.ts";
import { KUBERNETES_LIMITS } from "./limits.ts";

export interface ClusterPort {
  /** Empty: it has no name, so no record either. */
  readonly name: string;
  /** In lower case. */
  readonly protocol: string;
  readonly port: number;
}

export interface ClusterService {
  readonly namespace: string;
  readonly name: string;
  readonly isHeadless: boolean;
  readonly addresses: readonly Uint8Array[];
  /** The name that it stands for, as wire labels without the terminating zero. */
  readonly externalName: Uint8Array | undefined;
  readonly ports: readonly ClusterPort[];
  /** Endpoints count that are not ready. */
  readonly countsUnready: boolean;
}

export interface ClusterEndpoint {
  /** That of its slice. */
  readonly service: ObjectName;
  readonly addresses: readonly Uint8Array[];
  /** The label of its name below its service: its host name, or its address. */
  readonly label: string;
  readonly isReady: boolean;
}

export interface ClusterSlice {
  readonly namespace: string;
  readonly name: string;
  /** The service that it belongs to. */
  readonly service: ObjectName;
  readonly endpoints: readonly ClusterEndpoint[];
  /** Those that are ready. */
  readonly ready: readonly ClusterEndpoint[];
  readonly ports: readonly ClusterPort[];
}

export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** As Kubernetes allows them in names of services, namespaces and hosts. */
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
/** A slice's own name is in no record. */
const OBJECT_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;
const PORT_MAX = 65_535;
const SERVICE_LABEL = "kubernetes.io/service-name";
const TOLERATES_UNREADY = "service.alpha.kubernetes.io/tolerate-unready-endpoints";
const NONE = "None";

/** Of any object; undefined for one without a valid name. */
export function nameOf(object: unknown): ObjectName | undefined {
  const { namespace, name } = fieldsIn(fieldsOf(object), "metadata");
  if (typeof namespace !== "string" || typeof name !== "string") return undefined;
  return LABEL.test(namespace) && OBJECT_NAME.test(name) ? { namespace, name } : undefined;
}

export function readService(object: unknown): ClusterService {
  const { namespace, name } = validName(object, LABEL);
  const spec = fieldsIn(fieldsOf(object), "spec");
  const annotations = fieldsIn(fieldsIn(fieldsOf(object), "metadata"), "annotations");
  const isExternal = spec["type"] === "ExternalName";
  const texts = isExternal ? [] : addressTexts(spec);
  return {
    namespace,
    name,
    isHeadless: texts.includes(NONE),
    addresses: addressesIn(texts.filter((text) => text !== NONE)),
    externalName: isExternal ? externalName(spec["externalName"]) : undefined,
    ports: portsIn(spec["ports"]),
    countsUnready: spec["publishNotReadyAddresses"] === true || annotations[TOLERATES_UNREADY] === "true",
  };
}

/** Undefined for one that belongs to no service, or has no IP addresses. */
export function readSlice(object: unknown): ClusterSlice | undefined {
  const { namespace, name } = validName(object, OBJECT_NAME);
  const service = fieldsIn(fieldsIn(fieldsOf(object), "metadata"), "labels")[SERVICE_LABEL];
  const { addressType, endpoints, ports } = fieldsOf(object);
  if (typeof service !== "string" || !LABEL.test(service)) return undefined;
  if (addressType !== "IPv4" && addressType !== "IPv6") return undefined;
  const owner = { namespace, name: service };
  const all = listOf(endpoints)
    .slice(0, KUBERNETES_LIMITS.sliceEndpoints)
    .flatMap((each) => endpointIn(fieldsOf(each), owner) ?? []);
  const ready = all.filter(({ isReady }) => isReady);
  return {
    namespace,
    name,
    service: owner,
    endpoints: all,
    ready: ready.length === all.length ? all : ready,
    ports: portsIn(ports),
  };
}

/** Unknown means ready. */
function endpointIn(endpoint: Fields, service: ObjectName): ClusterEndpoint | undefined {
  const { addresses, hostname } = endpoint;
  const texts = textsIn(addresses).slice(0, KUBERNETES_LIMITS.endpointAddresses);
  const [first] = texts;
  const bytes = addressesIn(texts);
  if (first === undefined || bytes.length === 0) return undefined;
  const label = typeof hostname === "string" && LABEL.test(hostname) ? hostname : addressLabel(first);
  return { service, addresses: bytes, label, isReady: fieldsIn(endpoint, "conditions")["ready"] !== false };
}

/** An address as one label: 10-1-2-3, or fd00--1. */
function addressLabel(address: string): string {
  return address.replaceAll(/[.:]/g, "-").toLowerCase();
}

/** All cluster addresses; older versions have one only. */
function addressTexts(spec: Fields): readonly string[] {
  const all = textsIn(spec["clusterIPs"]);
  return all.length > 0 ? all : textsIn([spec["clusterIP"]]);
}

function addressesIn(texts: readonly string[]): readonly Uint8Array[] {
  return texts
    .slice(0, KUBERNETES_LIMITS.endpointAddresses)
    .flatMap((text) => (text === "" || text.includes("%") ? [] : (addressBytes(text) ?? [])));
}

function externalName(value: unknown): Uint8Array {
  const labels = typeof value === "string" && value !== "" ? wireLabels(value.replace(/\.$/, "")) : undefined;
  if (labels === undefined || labels.length === 0) throw new Error("its externalName is not a domain name");
  return labels;
}

function portsIn(value: unknown): readonly ClusterPort[] {
  return listOf(value)
    .slice(0, KUBERNETES_LIMITS.ports)
    .flatMap((each): readonly ClusterPort[] => {
      const { name, protocol, port } = fieldsOf(each);
      if (typeof port !== "number" || !Number.isInteger(port) || port < 1 || port > PORT_MAX) return [];
      return [
        {
          name: typeof name === "string" ? name.toLowerCase() : "",
          protocol: typeof protocol === "string" ? protocol.toLowerCase() : "tcp",
          port,
        },
      ];
    });
}

function validName(object: unknown, form: RegExp): ObjectName {
  const name = nameOf(object);
  if (name === undefined || !form.test(name.name)) throw new Error("its name or namespace is not valid");
  return name;
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function fieldsIn(fields: Fields, key: string): Fields {
  return fieldsOf(fields[key]);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textsIn(value: unknown): readonly string[] {
  return listOf(value).filter((each): each is string => typeof each === "string");
}
