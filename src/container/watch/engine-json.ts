/**
 * EngineJson: the parts of the engine's API responses that dns11 reads. Any of them may be missing. What else is in a response,
 * the author of an image may have made as long as he likes.
 */
import { LastText, Members, type Shape } from "../../base/lib/json-scanner.ts";
import { LIMITS } from "../../base/limits.ts";
import type { LabelKeys } from "../facts/label-keys.ts";
import type { Labels } from "../facts/labels.ts";

/** `GET /containers/{id}/json` */
export interface ContainerJson {
  readonly Id: string;
  readonly Name: string;
  readonly Created?: string;
  readonly RestartCount?: number;
  readonly State?: {
    readonly Running?: boolean;
    readonly Paused?: boolean;
    readonly Restarting?: boolean;
    readonly Health?: { readonly Status?: string } | null;
    readonly Pid?: number;
    readonly StartedAt?: string;
    readonly FinishedAt?: string;
    readonly ExitCode?: number;
  };
  /** The image's id. */
  readonly Image?: string;
  readonly ImageManifestDescriptor?: { readonly platform?: ImagePlatform | null } | null;
  readonly ResolvConfPath?: string;
  readonly HostsPath?: string;
  readonly Config?: {
    readonly Hostname?: string;
    readonly Domainname?: string;
    readonly Env?: readonly string[] | null;
    readonly Healthcheck?: { readonly Test?: readonly string[] | null } | null;
    readonly Labels?: Labels | null;
    /** The keys are ports such as 80/tcp. */
    readonly ExposedPorts?: Readonly<Record<string, unknown>> | null;
  };
  readonly HostConfig?: {
    readonly PortBindings?: Readonly<Record<string, unknown>> | null;
    readonly NetworkMode?: string;
    readonly Privileged?: boolean;
    readonly CapAdd?: readonly string[] | null;
    readonly Runtime?: string;
    /** The links of the default bridge: `/TARGET:/CONTAINER/ALIAS`. */
    readonly Links?: readonly string[] | null;
    readonly Dns?: readonly string[] | null;
    readonly DnsOptions?: readonly string[] | null;
    readonly ExtraHosts?: readonly string[] | null;
  };
  readonly NetworkSettings?: {
    readonly SandboxKey?: string;
    readonly Networks?: Readonly<Record<string, EndpointJson>> | null;
    /** The keys are ports such as 80/tcp; null is one that is exposed only. */
    readonly Ports?: Readonly<Record<string, readonly BindingJson[] | null>> | null;
  };
}

interface BindingJson {
  readonly HostIp?: string;
  readonly HostPort?: string;
}

export interface EndpointJson {
  readonly NetworkID?: string;
  readonly EndpointID?: string;
  readonly IPAddress?: string;
  readonly GlobalIPv6Address?: string;
  readonly Gateway?: string;
  readonly IPv6Gateway?: string;
  readonly MacAddress?: string;
  readonly GwPriority?: number;
  readonly Aliases?: readonly string[] | null;
  readonly DNSNames?: readonly string[] | null;
  readonly Links?: readonly string[] | null;
}

/** One entry of `GET /containers/json` */
export interface ListedJson {
  readonly Id: string;
  readonly Names?: readonly string[];
  readonly State?: string;
  /** People read it: "Up 2 minutes (healthy)", for example. */
  readonly Status?: string;
  readonly Labels?: Labels | null;
  readonly ImageID?: string;
  readonly ImageManifestDescriptor?: ContainerJson["ImageManifestDescriptor"];
  readonly NetworkSettings?: { readonly Networks?: Readonly<Record<string, EndpointJson>> | null };
}

/** `GET /networks/{id}` */
export interface NetworkJson {
  readonly Id: string;
  readonly Name: string;
  readonly Driver?: string;
  readonly Scope?: string;
  readonly Internal?: boolean;
  readonly Ingress?: boolean;
  readonly Labels?: Labels | null;
  readonly Options?: Readonly<Record<string, string>> | null;
  /** By the id of a container, or of a step of a build. */
  readonly Containers?: Readonly<
    Record<string, { readonly MacAddress?: string; readonly IPv4Address?: string; readonly IPv6Address?: string }>
  > | null;
  readonly IPAM?: { readonly Config?: readonly { readonly Gateway?: string; readonly Subnet?: string }[] | null };
}

/** `GET /images/{id}/json` */
export interface ImageJson {
  readonly Os?: string;
  readonly Architecture?: string;
  readonly Config?: {
    readonly Labels?: Labels | null;
    readonly ExposedPorts?: Readonly<Record<string, unknown>> | null;
  } | null;
}

/** The platform of a container's image, of several under one id. */
export interface ImagePlatform {
  readonly os?: string;
  readonly architecture?: string;
  readonly variant?: string;
}

/** An event: which container or network to inspect. */
export interface EngineEvent {
  readonly Type?: string;
  readonly Action?: string;
  /** Nanoseconds since 1970, rounded to the precision of a number. */
  readonly timeNano?: number;
  /** Among the attributes of a container are all of its labels. */
  readonly Actor?: {
    readonly ID?: string;
    readonly Attributes?: {
      readonly name?: string;
      readonly container?: string;
      readonly exitCode?: string;
      /** Of `kill`. */
      readonly signal?: string;
    };
  };
}

export interface VersionJson {
  readonly Version: string;
  readonly ApiVersion: string;
}

export interface InfoJson {
  readonly ID?: string;
  readonly Name?: string;
  readonly SecurityOptions?: readonly string[] | null;
}

/** A shape that has every member of the type. */
type ShapeOf<T> = T extends readonly (infer E)[]
  ? ShapeOf<E> | LastText
  : T extends object
    ? string extends keyof T
      ? Members | true
      : { readonly [K in keyof T]-?: ShapeOf<NonNullable<T[K]>> }
    : true;

const PLATFORM = { os: true, architecture: true, variant: true } satisfies ShapeOf<ImagePlatform>;

const ENDPOINT = {
  ...{ NetworkID: true, EndpointID: true, IPAddress: true, GlobalIPv6Address: true, Gateway: true, IPv6Gateway: true },
  ...{ MacAddress: true, GwPriority: true, Aliases: true, DNSNames: true, Links: true },
} as const satisfies ShapeOf<EndpointJson>;

const PORTS = new Members({}, LIMITS.exposedPorts);
/** KIND sets it on its nodes if the cluster's configuration has a search list; of several, the last one applies. */
export const KIND_SEARCH = "KIND_DNS_SEARCH";

/** What is read of each response; of labels those with these keys. */
export function engineShapes(keys: LabelKeys): Readonly<Record<"container" | "listed" | "network" | "image", Shape>> {
  const labels = new Members(true, Infinity, (key) => keys.has(key));
  return {
    container: {
      ...{ Id: true, Name: true, Created: true, RestartCount: true, Image: true },
      State: {
        ...{
          Running: true,
          Paused: true,
          Restarting: true,
          Pid: true,
          StartedAt: true,
          FinishedAt: true,
          ExitCode: true,
        },
        Health: { Status: true },
      },
      ImageManifestDescriptor: { platform: PLATFORM },
      ...{ ResolvConfPath: true, HostsPath: true },
      Config: {
        ...{ Hostname: true, Domainname: true, Healthcheck: { Test: new LastText("") } },
        ...{ Env: new LastText(`${KIND_SEARCH}=`), Labels: labels, ExposedPorts: PORTS },
      },
      HostConfig: {
        ...{ PortBindings: PORTS, NetworkMode: true, Privileged: true, CapAdd: true, Runtime: true },
        ...{ Links: true, Dns: true, DnsOptions: true, ExtraHosts: true },
      },
      NetworkSettings: {
        SandboxKey: true,
        Networks: new Members(ENDPOINT),
        Ports: new Members({ HostIp: true, HostPort: true }, LIMITS.exposedPorts),
      },
    } satisfies ShapeOf<ContainerJson>,
    listed: {
      ...{ Id: true, Names: true, State: true, Status: true, Labels: labels, ImageID: true },
      ImageManifestDescriptor: { platform: PLATFORM },
      NetworkSettings: { Networks: new Members(ENDPOINT) },
    } satisfies ShapeOf<ListedJson>,
    network: {
      ...{
        Id: true,
        Name: true,
        Driver: true,
        Scope: true,
        Internal: true,
        Ingress: true,
        Labels: labels,
        Options: true,
      },
      Containers: new Members({ MacAddress: true, IPv4Address: true, IPv6Address: true }),
      IPAM: { Config: { Gateway: true, Subnet: true } },
    } satisfies ShapeOf<NetworkJson>,
    image: {
      ...{ Os: true, Architecture: true },
      Config: { Labels: labels, ExposedPorts: PORTS },
    } satisfies ShapeOf<ImageJson>,
  };
}

export const EVENT_SHAPE = {
  ...{ Type: true, Action: true, timeNano: true },
  Actor: { ID: true, Attributes: { name: true, container: true, exitCode: true, signal: true } },
} as const satisfies ShapeOf<EngineEvent>;

export const VERSION_SHAPE = { Version: true, ApiVersion: true } as const satisfies ShapeOf<VersionJson>;

export const INFO_SHAPE = { ID: true, Name: true, SecurityOptions: true } as const satisfies ShapeOf<InfoJson>;
