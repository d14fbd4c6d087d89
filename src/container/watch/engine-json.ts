/**
 * EngineJson: the parts of the engine's API responses that dns11 reads. Any of them may be missing.
 */
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
