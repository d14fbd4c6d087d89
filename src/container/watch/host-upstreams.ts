/**
 * HostUpstreams: the current nameservers of the engine's host, and which containers use them.
 */
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { ReportEvent } from "../../base/log/log.ts";
import type { Server } from "../../base/model/view.ts";
import { LIMITS } from "../../base/limits.ts";
import { addressText, unmappedBytesOf } from "../../base/model/address.ts";
import {
  type EngineFile,
  type EngineHost,
  isAsWritten,
  readEngineFile,
  tryReadContainerFile,
} from "../namespace/engine-host.ts";
import type { NameserversFact } from "../facts/fact.ts";
import { SEARCH_OPTION, labelSearch } from "../facts/label-choices.ts";
import { DaemonDns } from "./daemon-dns.ts";
import { HostFile, type HostServers, hostFiles, listedServers, readHostServers } from "./host-file.ts";
import { nameserversOf } from "./nameservers.ts";
import { type ListedServer, parseResolvConf } from "./resolv-conf.ts";
import { isOnDefaultBridgeOnly } from "./translate.ts";
import type { ContainerJson } from "./engine-json.ts";

/** Ours, and those that stand for another address. */
const UNUSABLE = new Set(["127.0.0.11", "0.0.0.0", "::"]);

/** The settings about the host. */
interface HostSettings {
  readonly behaviour: Pick<Behaviour, "followsHost">;
  /** The path of the host's resolv.conf, by default /etc/resolv.conf. */
  readonly resolvConf: string | undefined;
}

interface HostUpstreamsParts {
  readonly onEvent: ReportEvent;
  /** Returns the current engine host, a new one after a restart of the engine. */
  readonly host: () => EngineHost;
  readonly engineVersion: () => number;
  /** The servers or their own upstreams have changed. */
  readonly onChange: (servers: readonly Server[]) => void;
  /** Inspect these containers again: their nameservers could not be determined before. */
  readonly reinspect: (containerIds: readonly string[]) => void;
}

export class HostUpstreams {
  readonly #parts: HostUpstreamsParts;
  readonly #daemonDns: DaemonDns;
  #settings: HostSettings;
  #file: HostFile | undefined;
  #now: HostServers;
  /** Containers whose resolv.conf could not be read without waiting. */
  readonly #unread = new UnreadFiles((ids) => this.#retry(ids));

  constructor(parts: HostUpstreamsParts, settings: HostSettings) {
    this.#parts = parts;
    this.#daemonDns = new DaemonDns(parts.host);
    this.#settings = settings;
    this.#now = this.#open();
    if (this.#now.invalid.length > 0) {
      parts.onEvent({ invalid: this.#now.invalid }, "ignoring invalid nameservers in the host's resolv.conf", "warn");
    }
  }

  get servers(): readonly Server[] {
    return this.#now.servers;
  }

  /** What the host's own programs read in its resolv.conf. */
  get resolvConf(): Pick<HostServers, "nameservers" | "search"> {
    return this.#now;
  }

  /** Where they are listed. */
  get listed(): readonly ListedServer[] {
    return listedServers(this.#parts.host(), this.#settings.resolvConf);
  }

  nameserversOf(json: ContainerJson): NameserversFact {
    const file = tryReadContainerFile(this.#parts.host(), json.ResolvConfPath ?? "", json.Id);
    const isHostUnread = this.#now.isBusy === true;
    if (file.kind === "busy" || isHostUnread) this.#unread.add(json.Id);
    if (isOnDefaultBridgeOnly(json)) return this.#captured(json, file);
    return nameserversOf({
      resolvConf: file.kind === "read" ? file.text : undefined,
      hostServers: () => this.#addressesOfHost(),
      dns: json.HostConfig?.Dns ?? [],
      dnsOptions: json.HostConfig?.DnsOptions ?? [],
      ownOption: labelSearch(json.Config?.Labels ?? {}).policy === "project" ? SEARCH_OPTION : undefined,
      engineVersion: this.#parts.engineVersion(),
      followsHost: this.#settings.behaviour.followsHost,
      daemonDns: () => (isHostUnread ? undefined : this.#daemonDns.readServers()),
    });
  }

  #captured(json: ContainerJson, file: EngineFile): NameserversFact {
    if (file.kind !== "read") return { kind: "unknown" };
    const { text } = file;
    const servers = capturedServers(parseResolvConf(text).nameservers);
    const mayFollow = this.#settings.behaviour.followsHost && this.#now.isBusy !== true;
    const followsHost = mayFollow && this.#isFromHost(json) && this.#isAsWritten(json, text) === true;
    return { kind: "captured", servers, isNdotsSet: false, followsHost };
  }

  /** The resolv.conf of a container without Docker's resolver, if it is still the copy of the host's that the engine made at its start. */
  copyOfHost(json: ContainerJson): string | undefined {
    const file = tryReadContainerFile(this.#parts.host(), json.ResolvConfPath ?? "", json.Id);
    if (file.kind !== "read" || !this.#isFromHost(json)) return undefined;
    // Before Docker 23 there is no checksum for the host's network.
    const isCopy = this.#isAsWritten(json, file.text) ?? json.HostConfig?.NetworkMode === "host";
    return isCopy ? file.text : undefined;
  }

  #isFromHost({ HostConfig }: ContainerJson): boolean {
    return (HostConfig?.Dns ?? []).length === 0 && this.#daemonDns.readServers()?.length === 0;
  }

  #isAsWritten({ Id: id, ResolvConfPath: path = "" }: ContainerJson, text: string): boolean | undefined {
    return isAsWritten(this.#parts.host(), path, { id, text });
  }

  /** Applies settings; returns whether the nameservers of containers must be determined again. */
  configure(settings: HostSettings): boolean {
    const { behaviour, resolvConf } = this.#settings;
    this.#settings = settings;
    if (behaviour.followsHost === settings.behaviour.followsHost && resolvConf === settings.resolvConf) return false;
    this.close();
    const now = this.#open();
    if (textOf(now) !== textOf(this.#now)) this.#update(now);
    return true;
  }

  /** Call when the engine's host may have changed. */
  reread(): void {
    this.#file?.reread();
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
    this.#unread.close();
  }

  #addressesOfHost(): ReadonlySet<string> {
    const host = this.#parts.host();
    const texts = hostFiles(host, this.#settings.resolvConf).map((file) => readEngineFile(host, file) ?? "");
    return new Set(texts.flatMap((text) => parseResolvConf(text).nameservers));
  }

  #retry(containerIds: readonly string[]): void {
    // A HostFile retries by itself.
    if (this.#file === undefined && this.#now.isBusy === true) this.#update(this.#open());
    this.#parts.reinspect(containerIds);
  }

  /** Routes can refer to the host's servers even if containers do not follow them; then those at start apply. */
  #open(): HostServers {
    const { host } = this.#parts;
    const { behaviour, resolvConf: path } = this.#settings;
    if (!behaviour.followsHost) return readHostServers(host(), path);
    this.#file = new HostFile({ host, path, onChange: (now) => this.#update(now) });
    return this.#file.now;
  }

  #update(now: HostServers): void {
    const before = this.#now;
    this.#now = now;
    this.#parts.onChange(now.servers);
    const invalid = now.invalid.filter((text) => !before.invalid.includes(text));
    const details = { before: textOf(before), now: textOf(now), ...(invalid.length > 0 && { invalid }) };
    this.#parts.onEvent(details, "the host's nameservers changed");
  }
}

/** The servers in order, the upstreams of a stub in parentheses. */
function textOf({ servers }: HostServers): string {
  return servers.map(({ address, isBackup }) => (isBackup === true ? `(${address})` : address)).join(" ");
}

/**
 * The servers in the resolv.conf of a container without Docker's resolver, whose port 53 is captured.
 * The container can write the file: whatever it names, only its own queries are concerned, and they are forwarded to no
 * server that it could not query itself.
 *
 * Those that can be captured, in the order of the file. The zone of a link-local address is no part of a packet.
 */
export function capturedServers(nameservers: readonly string[]): string[] {
  const servers = nameservers.flatMap((text) => {
    // Packets to an IPv4-mapped address are IPv4.
    const bytes = unmappedBytesOf(text);
    return bytes === undefined || text.includes("%") ? [] : [addressText(bytes)];
  });
  const usable = servers.filter((server) => !UNUSABLE.has(server));
  return [...new Set(usable)].slice(0, LIMITS.capturedServers);
}

/**
 * Containers with a file that could not be read without waiting, because a process holds a lease on it.
 * They are tried again later: the kernel breaks a lease 45 seconds after our attempt, unless its holder takes another
 * one at once.
 */
export class UnreadFiles {
  readonly #retry: (containerIds: readonly string[]) => void;
  readonly #ids = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(retry: (containerIds: readonly string[]) => void) {
    this.#retry = retry;
  }

  add(containerId: string): void {
    this.#ids.add(containerId);
    this.#timer ??= setTimeout(() => {
      const ids = [...this.#ids];
      this.#ids.clear();
      this.#timer = undefined;
      this.#retry(ids);
    }, LIMITS.unreadRetryMs).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
