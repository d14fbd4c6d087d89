import type { EtcdReport } from "../../api/etcd.ts";
import type { Fault } from "../../base/lib/fault.ts";
import type { ReportEvent } from "../../base/log/log.ts";
import { Gateway, type GatewayOptions } from "./client/gateway.ts";
import type { StoredKeys } from "./client/keys.ts";
import type { StoredKey } from "./client/messages.ts";
import { Mirror, type MirrorCounts } from "./client/mirror.ts";
import type { PublisherCounts } from "./client/publisher.ts";
import type { EtcdPolicy } from "./feature.ts";
import { ETCD_LIMITS } from "./limits.ts";
import type { RemoteMembers } from "./machines.ts";
import type { StoredNames } from "./names.ts";
import { EtcdPublishing, type Publication, type PublishingMachine } from "./publishing.ts";

/** What all connections of a run have done. */
export interface EtcdCounts {
  readonly mirror: MirrorCounts;
  readonly publisher: PublisherCounts;
}

interface EtcdConnectionParts {
  readonly policy: EtcdPolicy;
  readonly names: StoredNames;
  readonly remote: RemoteMembers | undefined;
  readonly options: GatewayOptions;
  readonly counts: EtcdCounts;
  readonly onEvent: ReportEvent;
}

const SKIPPED_LOGGED = 3;
const MEMBERS_AWAITED = 2;

/** One connection to etcd, from its settings to the names that it fills. */
export class EtcdConnection {
  readonly #parts: EtcdConnectionParts;
  readonly #gateway: Gateway;
  readonly #mirror: Mirror;
  readonly #keys: EtcdKeys;
  #publishing: EtcdPublishing | undefined;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;
  /** Why etcd is away; undefined while it is not, or before the first list. */
  #fault: Fault | undefined;
  #isCurrent = false;
  #onState: () => void = () => {};

  constructor(parts: EtcdConnectionParts) {
    this.#parts = parts;
    this.#gateway = new Gateway(parts.options);
    const { policy, names, remote, counts } = parts;
    this.#keys = new EtcdKeys(names, remote);
    this.#mirror = new Mirror({
      gateway: this.#gateway,
      prefix: policy.zones.length === 0 && remote !== undefined ? remote.prefix : `${policy.prefix}/`,
      keys: this.#keys,
      onState: (fault) => this.#note(fault),
      counts: counts.mirror,
    });
    this.#done = this.#mirror.run(this.#stop.signal);
  }

  get report(): EtcdReport {
    const { policy, names } = this.#parts;
    const { records, refused, isCut, ignored, skipped, problems, staleMs, isUsable } = names.report;
    const mirror = this.#mirror;
    return {
      state: this.#isCurrent ? "current" : isUsable ? "last-known" : "unavailable",
      code: this.#fault?.code ?? null,
      reason: this.#fault?.message ?? null,
      remedy: this.#fault?.remedy ?? null,
      staleSeconds: staleMs === undefined ? null : Math.round(staleMs / 1000),
      members: this.#gateway.members.map((member) => ({
        endpoint: member.endpoint,
        isCurrent: member === this.#gateway.current,
        reason: member.fault?.message ?? null,
      })),
      zones: policy.zones,
      prefix: policy.prefix,
      revision: mirror.revision ?? null,
      alarms: mirror.alarms,
      lists: mirror.counts.lists,
      reconnects: mirror.counts.reconnects,
      records,
      refused,
      isCut,
      ignored,
      skipped,
      problems,
      machines: this.#parts.remote?.report ?? null,
      publishing: this.#publishing?.report ?? null,
    };
  }

  /** Undefined while nothing is published. */
  get publishing(): EtcdPublishing | undefined {
    return this.#publishing;
  }

  /** Writes what is wanted from now on, where the settings ask for it, and it has not begun. */
  publish(machine: PublishingMachine, keys: Publication): void {
    const { policy, onEvent, counts } = this.#parts;
    const { publish } = policy;
    if (publish === undefined || this.#publishing !== undefined) return;
    const gateway = this.#gateway;
    const publishing = new EtcdPublishing({
      gateway,
      machine,
      policy,
      publish,
      keys,
      counts: counts.publisher,
      onEvent,
    });
    this.#publishing = publishing;
    this.#keys.onOwnKey = (key, value) => publishing.noteStored(key, value);
  }

  /** Resolves when the names are known, or it is known that they are not, or after a while. */
  async settled(): Promise<void> {
    if (this.#isCurrent || this.#fault !== undefined) return;
    await new Promise<void>((resolve) => {
      // The next member is asked where one does not reply.
      const timer = setTimeout(resolve, ETCD_LIMITS.callMs * Math.min(this.#gateway.members.length, MEMBERS_AWAITED));
      this.#onState = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** `isWithdrawn`: what is published ends with it. */
  async close(isWithdrawn: boolean): Promise<void> {
    this.#stop.abort();
    await this.#publishing?.close(isWithdrawn);
    this.#gateway.close();
    await this.#done;
  }

  #note(fault: Fault | undefined): void {
    const { names, onEvent } = this.#parts;
    const [wasCurrent, before] = [this.#isCurrent, this.#fault];
    this.#isCurrent = fault === undefined;
    this.#fault = fault;
    this.#keys.setCurrent(this.#isCurrent);
    this.#onState();
    const { records, skipped, problems } = names.report;
    if (fault === undefined && !wasCurrent) {
      onEvent({ records, skipped }, "etcd is connected");
      if (skipped > 0)
        onEvent({ skipped, first: problems.slice(0, SKIPPED_LOGGED) }, "skipped records of etcd", "warn");
    }
    if (fault !== undefined && before?.code !== fault.code) {
      const { message: reason, remedy } = fault;
      onEvent({ reason, remedy, records }, "etcd is away, serving the last known names", "warn");
    }
  }
}

/** What etcd has below the prefix, as the names and the members of services that it means. */
export class EtcdKeys implements StoredKeys {
  readonly #names: StoredNames;
  readonly #remote: RemoteMembers | undefined;
  /** A key of this machine has this value now; undefined: it is deleted. */
  onOwnKey: (key: string, value: string | undefined) => void = () => {};

  constructor(names: StoredNames, remote: RemoteMembers | undefined) {
    this.#names = names;
    this.#remote = remote;
  }

  /** Too many names leave the containers of other machines their room. */
  after(key: string): string | undefined {
    const remote = this.#remote;
    if (remote?.takes(key) === true) return remote.after(key);
    return this.#names.after(key) ?? (remote !== undefined && key < remote.prefix ? remote.prefix : undefined);
  }

  begin(): void {
    this.#names.begin();
    this.#remote?.begin();
  }

  commit(): void {
    this.#names.commit();
    this.#remote?.commit();
  }

  put(stored: StoredKey): void {
    this.#of(stored.key).put(stored);
    if (this.#remote?.isOwn(stored.key) === true) this.onOwnKey(stored.key, stored.value?.toString("latin1") ?? "");
  }

  remove(key: string): void {
    this.#of(key).remove(key);
    if (this.#remote?.isOwn(key) === true) this.onOwnKey(key, undefined);
  }

  setLease(lease: string, ttlSeconds: number): void {
    this.#names.setLease(lease, ttlSeconds);
  }

  setCurrent(isCurrent: boolean): void {
    this.#names.setCurrent(isCurrent);
    this.#remote?.setCurrent(isCurrent);
  }

  #of(key: string): StoredKeys {
    return this.#remote?.takes(key) === true ? this.#remote : this.#names;
  }
}
