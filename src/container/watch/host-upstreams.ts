/**
 * HostUpstreams: what containers get from the engine's host: the servers of its resolv.conf, as they are now, and which
 * containers they are for.
 */
import { LIMITS } from "../../base/limits.ts";
import { type EngineHost, tryReadContainerFile, readEngineFile } from "../namespace/engine-host.ts";
import type { NameserversFact } from "../registry/fact.ts";
import { DaemonDns } from "./daemon-dns.ts";
import { HostFile, type HostServers, hostFiles, readHostServers } from "./host-file.ts";
import { nameserversOf } from "./nameservers.ts";
import { parseResolvConf } from "./resolv-conf.ts";
import type { ContainerJson } from "./engine-json.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { ReportEvent } from "../../base/model/event.ts";
import type { Server } from "../../base/model/view.ts";

/** Of the settings, what is about the host. */
interface HostSettings {
  readonly behaviour: Pick<Behaviour, "followsHost">;
  /** The host's resolv.conf, where it is not in its usual place. */
  readonly resolvConf: string | undefined;
}

export interface HostUpstreamsParts {
  readonly onEvent: ReportEvent;
  /** The engine's host as it is now; another one after the engine was restarted. */
  readonly host: () => EngineHost;
  readonly engineVersion: () => number;
  /** The servers are others now, or those that they ask are. */
  readonly onChange: (servers: readonly Server[]) => void;
  /** The lists of these containers could not be found for the moment. */
  readonly reinspect: (containerIds: readonly string[]) => void;
}

export class HostUpstreams {
  readonly #parts: HostUpstreamsParts;
  readonly #daemonDns: DaemonDns;
  #settings: HostSettings;
  #file: HostFile | undefined;
  #now: HostServers;
  /** Containers with a file that could not be read without waiting, and when that is tried again. */
  readonly #unread = new Set<string>();
  #again: NodeJS.Timeout | undefined;

  constructor(parts: HostUpstreamsParts, settings: HostSettings) {
    this.#parts = parts;
    this.#daemonDns = new DaemonDns(parts.host);
    this.#settings = settings;
    this.#now = this.#open();
    if (this.#now.invalid.length > 0) {
      parts.onEvent(
        { invalid: this.#now.invalid },
        "the host's resolv.conf names servers that are no addresses",
        "warn",
      );
    }
  }

  get servers(): readonly Server[] {
    return this.#now.servers;
  }

  nameserversOf(json: ContainerJson): NameserversFact {
    const file = tryReadContainerFile(this.#parts.host(), json.ResolvConfPath ?? "", json.Id);
    const isHostUnread = this.#now.isBusy === true;
    if (file.kind === "busy" || isHostUnread) this.#tryAgain(json.Id);
    return nameserversOf({
      resolvConf: file.kind === "read" ? file.text : undefined,
      hostServers: () => this.#addressesOfHost(),
      dns: json.HostConfig?.Dns ?? [],
      dnsOptions: json.HostConfig?.DnsOptions ?? [],
      engineVersion: this.#parts.engineVersion(),
      followsHost: this.#settings.behaviour.followsHost,
      daemonDns: () => (isHostUnread ? undefined : this.#daemonDns.readServers),
    });
  }

  /** Returns whether the lists of containers have to be found anew. */
  configure(settings: HostSettings): boolean {
    const { behaviour, resolvConf } = this.#settings;
    this.#settings = settings;
    if (behaviour.followsHost === settings.behaviour.followsHost && resolvConf === settings.resolvConf) return false;
    this.close();
    const now = this.#open();
    if (textOf(now) !== textOf(this.#now)) this.#take(now);
    return true;
  }

  /** To be called when the engine's host may be another one. */
  reread(): void {
    this.#file?.reread();
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
    clearTimeout(this.#again);
    this.#again = undefined;
  }

  #addressesOfHost(): ReadonlySet<string> {
    const host = this.#parts.host();
    const texts = hostFiles(this.#settings.resolvConf).map((file) => readEngineFile(host, file) ?? "");
    return new Set(texts.flatMap((text) => parseResolvConf(text).nameservers));
  }

  /** A lease that we have come upon is gone after 45 seconds, unless its holder is quick to take another one. */
  #tryAgain(containerId: string): void {
    this.#unread.add(containerId);
    this.#again ??= setTimeout(() => {
      const ids = [...this.#unread];
      this.#unread.clear();
      this.#again = undefined;
      // One that is followed looks again by itself.
      if (this.#file === undefined && this.#now.isBusy === true) this.#take(this.#open());
      this.#parts.reinspect(ids);
    }, LIMITS.unreadRetryMs).unref();
  }

  /** Servers can be named as the host's also where containers do not follow them: then those of the start count. */
  #open(): HostServers {
    const { host } = this.#parts;
    const { behaviour, resolvConf: path } = this.#settings;
    if (!behaviour.followsHost) return readHostServers(host(), path);
    this.#file = new HostFile({ host, path, onChange: (now) => this.#take(now) });
    return this.#file.now;
  }

  #take(now: HostServers): void {
    const before = this.#now;
    this.#now = now;
    this.#parts.onChange(now.servers);
    const invalid = now.invalid.filter((text) => !before.invalid.includes(text));
    const told = { before: textOf(before), now: textOf(now), ...(invalid.length > 0 && { invalid }) };
    this.#parts.onEvent(told, "the host's nameservers changed");
  }
}

/** The servers in their order, those behind a stub in brackets. */
function textOf({ servers }: HostServers): string {
  return servers.map(({ address, isBackup }) => (isBackup === true ? `(${address})` : address)).join(" ");
}
