/**
 * ContainerRequest: what is asked of the engine for a container of a sandbox: what of it cannot be held, and what is asked instead.
 */
import { realpathSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";

import { Fault } from "../../../base/lib/fault.ts";
import { LISTENER_ADDRESSES } from "../../../base/model/listener-addresses.ts";
import { hostCapabilities, plainCapability } from "../../../container/watch/translate.ts";

/** The label of a sandbox's containers and of its network. */
export const SANDBOX_LABEL = "io.dns11.sandbox";

/** Docker's words for its default network. */
const DEFAULT_NETWORKS: ReadonlySet<string> = new Set(["", "default", "bridge"]);
const SHARED = "container:";

interface Endpoints {
  readonly EndpointsConfig?: Readonly<Record<string, { readonly NetworkID?: string } | null>> | null;
}

/** Where dockerd itself sends nothing to. */
const LOG_DRIVERS: ReadonlySet<string> = new Set(["", "json-file", "local", "journald", "none"]);
/** Of the volume driver `local`: a folder of the host, or memory. All others are disks, or leave by the network of the host. */
const VOLUME_TYPES: ReadonlySet<string> = new Set(["", "none", "bind", "tmpfs"]);

interface MountJson {
  readonly Type?: string;
  readonly Source?: string;
  readonly VolumeOptions?: {
    readonly DriverConfig?: { readonly Name?: string; readonly Options?: VolumeOptions } | null;
  } | null;
}

/** Of the driver `local`: what is mounted where. */
export type VolumeOptions = Readonly<Record<string, string>> | null;

/** `HostConfig` of a request, and of an inspect. */
export interface HostConfig {
  readonly Privileged?: boolean;
  readonly CapAdd?: readonly string[] | null;
  readonly CapDrop?: readonly string[] | null;
  readonly NetworkMode?: string;
  readonly UsernsMode?: string;
  readonly Binds?: readonly string[] | null;
  readonly Mounts?: readonly MountJson[] | null;
  readonly VolumesFrom?: readonly string[] | null;
  readonly PidMode?: string;
  readonly Devices?: readonly { readonly PathOnHost?: string }[] | null;
  readonly DeviceCgroupRules?: readonly string[] | null;
  readonly ReadonlyPaths?: readonly string[] | null;
  readonly LogConfig?: { readonly Type?: string } | null;
  readonly Dns?: readonly string[] | null;
  readonly RestartPolicy?: { readonly Name?: string } | null;
}

/** The body of `POST /containers/create`, as far as it matters. */
export interface CreateBody {
  readonly Labels?: Readonly<Record<string, string>> | null;
  readonly HostConfig?: HostConfig | null;
  readonly NetworkingConfig?: Endpoints | null;
}

export interface SandboxPlace {
  readonly id: string;
  /** Where containers are that name no network. */
  readonly network: string;
  /** Of the engine, of dns11 and of the sandbox: whoever has one is not held. */
  readonly sockets: readonly string[];
  /** Root in a container is nobody on the host. */
  readonly hasUserNamespaces: boolean;
}

interface HeldRequest {
  readonly body: CreateBody;
  /** Networks that it names, beside that of the sandbox. */
  readonly networks: readonly string[];
  readonly usesOwnNetwork: boolean;
  /** Volumes that it names: there may be such ones already. */
  readonly volumes: readonly string[];
  /** The containers whose network, processes or mounts it uses. */
  readonly sharedWith: readonly string[];
  readonly notes: readonly string[];
}

/** What is read here; the engine reads it in any letter case. */
const READ = new Map(
  (
    "Binds CapAdd CapDrop DeviceCgroupRules Devices Dns Driver DriverConfig DriverOpts EndpointsConfig HostConfig Labels LogConfig " +
    "Mounts Name NetworkID NetworkMode NetworkingConfig Options PathOnHost PidMode Privileged ReadonlyPaths RestartPolicy Source " +
    "Type UsernsMode VolumeOptions VolumesFrom"
  )
    .split(" ")
    .map((key) => [folded(key), key]),
);

/** Throws a Fault where the container cannot be held. */
export function heldRequest(body: CreateBody, place: SandboxPlace, name: string): HeldRequest {
  const host = body.HostConfig ?? {};
  const mounts = host.Mounts ?? [];
  const volumes = mounts.flatMap(({ VolumeOptions: options }) => [options, options?.DriverConfig]);
  const parts = [body, host, body.NetworkingConfig, host.LogConfig, host.RestartPolicy, ...(host.Devices ?? [])];
  for (const part of [...parts, ...mounts, ...volumes]) requirePlainKeys(part ?? {});
  const notes = checkHeld(host, place, name);
  const mode = host.NetworkMode ?? "";
  const isOwn = DEFAULT_NETWORKS.has(mode);
  const sharesNetwork = mode.startsWith(SHARED);
  const endpoints = body.NetworkingConfig?.EndpointsConfig ?? {};
  const renamed = Object.entries(endpoints).map(
    ([network, endpoint]) => [DEFAULT_NETWORKS.has(network) ? place.network : network, endpoint] as const,
  );
  const named = [...(isOwn || sharesNetwork ? [] : [mode]), ...renamed.map(([network]) => network)];
  const byId = Object.values(endpoints).flatMap((endpoint) => endpoint?.NetworkID ?? []);
  const hasServers = (host.Dns ?? []).length > 0;
  const restart = host.RestartPolicy?.Name ?? "";
  const restarts = restart !== "" && restart !== "no";
  if (restarts)
    notes.push(`${name}: restart policy ${restart} is left out, as it would also start when nobody holds it`);
  if (hasServers)
    notes.push(`${name} asks ${host.Dns?.join(", ")}: it needs a rule such as --allow ${host.Dns?.[0]}:53`);
  return {
    networks: [...new Set([...named, ...byId])].filter((network) => !["", "none", place.network].includes(network)),
    volumes: [
      ...bindSources(host),
      ...(host.Mounts ?? []).flatMap(({ Type: type, Source: source }) => (type === "volume" ? (source ?? []) : [])),
    ].filter((source) => source !== "" && !source.startsWith("/")),
    usesOwnNetwork: isOwn || named.includes(place.network),
    sharedWith: [
      ...[mode, host.PidMode ?? ""].filter((each) => each.startsWith(SHARED)).map((each) => each.slice(SHARED.length)),
      ...(host.VolumesFrom ?? []).map((each) => each.split(":", 1)[0] ?? ""),
    ],
    notes,
    body: {
      ...body,
      Labels: { ...body.Labels, [SANDBOX_LABEL]: place.id },
      HostConfig: {
        ...host,
        ...(isOwn && { NetworkMode: place.network }),
        // Docker's resolver then forwards from the container, where the kernel judges what it sends. One that shares a network has none.
        ...(!hasServers && !sharesNetwork && mode !== "none" && { Dns: [LISTENER_ADDRESSES.ipv4] }),
        ...(!hasRawFrames(host) && { CapDrop: [...(host.CapDrop ?? []), "NET_RAW"] }),
        ...(restarts && { RestartPolicy: { Name: "no" } }),
      },
      ...(body.NetworkingConfig && {
        NetworkingConfig: { ...body.NetworkingConfig, EndpointsConfig: Object.fromEntries(renamed) },
      }),
    },
  };
}

/** Throws a Fault where the engine would read a key that is not read here. */
export function requirePlainKeys(part: object): void {
  const odd = Object.keys(part).find((key) => (READ.get(folded(key)) ?? key) !== key);
  if (odd !== undefined)
    throw new Fault("USAGE", `The engine would read ${odd} as ${READ.get(folded(odd))}`, {
      remedy: "Write it like that.",
    });
}

/** Letters that an engine takes for the same: also a long s, and the sign of kelvins. */
function folded(key: string): string {
  return key.normalize("NFKC").toLowerCase();
}

/** Throws a Fault where such a container cannot be held. Returns what is to be known of one that can. */
export function checkHeld(host: HostConfig, place: SandboxPlace, name: string): string[] {
  const isRoot = !place.hasUserNamespaces || host.UsernsMode === "host";
  if (host.Privileged === true && isRoot)
    throw unheld(
      name,
      "is privileged, and so may do what root may do on the host",
      "Delete --privileged (privileged: true).",
    );
  const capabilities = isRoot ? hostCapabilities(host.CapAdd ?? []).map(plainCapability) : [];
  if (capabilities.length > 0) {
    const raw = hasRawFrames(host) ? " Delete NET_RAW, too: it makes frames by hand, for a neighbour's address." : "";
    const lines = capabilities.map((each) => `--cap-add ${each}`).join(" ");
    throw unheld(
      name,
      `has ${capabilities.join(", ")}, with which it could change what holds it`,
      `Delete ${lines} (cap_add, or runArgs of a devcontainer): a firewall inside is not needed any more.${raw}`,
    );
  }
  if (host.NetworkMode === "host")
    throw unheld(
      name,
      "uses the network of the host",
      "Delete --network host (network_mode: host), and publish ports.",
    );
  const mounts = host.Mounts ?? [];
  const sources = [
    ...bindSources(host),
    ...mounts.flatMap(({ Type: type, Source: source }) => (type === "bind" ? (source ?? []) : [])),
  ];
  for (const { VolumeOptions: options } of mounts)
    checkVolume(options?.DriverConfig?.Name, options?.DriverConfig?.Options, place, name);
  for (const source of sources) checkMounted(source, place, name);
  const disk = (host.Devices ?? []).find(({ PathOnHost: path = "" }) => mayBeDisk(path));
  if (disk !== undefined)
    throw unheld(name, `has the disk ${disk.PathOnHost}`, "Delete --device (devices:), and mount a folder of it.");
  const driver = host.LogConfig?.Type ?? "";
  if (!LOG_DRIVERS.has(driver))
    throw unheld(
      name,
      `has the log driver ${driver}, by which dockerd sends what it prints, from the host`,
      "Delete --log-driver (logging:).",
    );
  if ((host.DeviceCgroupRules ?? []).some((rule) => !isOfNoDisk(rule)))
    throw unheld(name, "may use disks of the host", "Delete --device-cgroup-rule (device_cgroup_rules:).");
  if (host.PidMode === "host")
    throw unheld(
      name,
      "sees the processes of the host, and may enter those of other containers",
      "Delete --pid host (pid: host).",
    );
  // The author of a client may give others than Docker's; without /proc/sys it sets how the host's kernel works.
  if (Array.isArray(host.ReadonlyPaths) && !host.ReadonlyPaths.includes("/proc/sys"))
    throw unheld(name, "may write settings of the host's kernel", "Delete --security-opt systempaths=unconfined.");
  return hasRawFrames(host)
    ? [`${name} has NET_RAW: in its first milliseconds its frames go where a neighbour's may. Delete --cap-add NET_RAW`]
    : [];
}

/** Folders of the host, and volumes by their names. */
function bindSources({ Binds: binds }: HostConfig): string[] {
  return (binds ?? []).map((bind) => bind.split(":", 1)[0] ?? "");
}

/** Throws a Fault if whoever has this mounted can start containers that nobody holds. */
function checkMounted(source: string, { sockets }: SandboxPlace, name: string): void {
  if (!source.startsWith("/") || !sockets.some((path) => leadsTo(source, path))) return;
  throw unheld(
    name,
    `mounts ${source}, and with it a socket that starts containers which nobody holds`,
    "Delete this mount.",
  );
}

/** Throws a Fault where a volume is a way out, or has a socket in it. */
export function checkVolume(
  driver: string | undefined,
  options: VolumeOptions | undefined,
  place: SandboxPlace,
  name: string,
): void {
  const type = options?.["type"] ?? "";
  const isLocal = ["", "local"].includes(driver ?? "") && VOLUME_TYPES.has(type);
  if (!isLocal)
    throw unheld(
      name,
      `has a volume of ${type === "" ? `the driver ${driver}` : `the type ${type}`}, which the host mounts`,
      "Mount a folder of the host.",
    );
  checkMounted(options?.["device"] ?? "", place, name);
}

/** The number of SCSI generic (/dev/sg0): whoever may write there reads and writes the whole disk, without any capability. */
const SCSI_GENERIC = 21;

/** Of character devices, but of these and of all. */
function isOfNoDisk(rule: string): boolean {
  const [, major] = /^\s*c\s+(\d+):/.exec(rule) ?? [];
  return major !== undefined && Number(major) !== SCSI_GENERIC;
}

/** A folder stands for all devices in it. */
function mayBeDisk(path: string): boolean {
  try {
    const found = statSync(path);
    const isScsi = found.isCharacterDevice() && found.rdev >>> 8 === SCSI_GENERIC;
    return found.isBlockDevice() || found.isDirectory() || isScsi;
  } catch {
    return false;
  }
}

function hasRawFrames({ CapAdd: added }: HostConfig): boolean {
  return (added ?? []).some((each) => plainCapability(each) === "NET_RAW");
}

function unheld(name: string, why: string, remedy: string): Fault {
  return new Fault("POLICY_NOT_HELD", `${name} cannot be held: it ${why}`, { remedy });
}

/** Whether a mounted path is a socket, or a folder above it, by whatever links. */
function leadsTo(source: string, socket: string): boolean {
  const [from, to] = [realPath(source), realPath(socket)];
  return from === to || from === "/" || to.startsWith(`${from}/`);
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const folder = dirname(path);
    return folder === path ? path : join(realPath(folder), basename(path));
  }
}
