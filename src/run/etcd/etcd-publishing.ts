/**
 * EtcdPublishing: the containers of this machine on their way to etcd: starts and ends the publisher, logs what becomes of
 * it, and reports it.
 */
import { randomUUID } from "node:crypto";

import type { PublishReport } from "../../api/etcd.ts";
import type { Fault } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";
import type { EtcdPolicy, PublishPolicy } from "../../base/model/etcd-policy.ts";
import type { ReportEvent } from "../../base/model/event.ts";
import { MACHINE_KEY, machinesPrefix } from "../../container/names/zone/remote-members.ts";
import type { Publication } from "../../container/publish/publication.ts";
import type { Gateway } from "../../etcd/gateway.ts";
import { Publisher } from "../../etcd/publish/publisher.ts";

/** This machine, as etcd knows it. */
export interface PublishingMachine {
  readonly name: string;
  /** Which dns11 of it. */
  readonly instance: string;
}

interface EtcdPublishingParts {
  readonly gateway: Gateway;
  readonly machine: PublishingMachine;
  readonly policy: EtcdPolicy;
  readonly publish: PublishPolicy;
  readonly keys: Publication;
  readonly onEvent: ReportEvent;
}

/** One for each process: after a restart it is another one. */
const RUN = randomUUID();

export class EtcdPublishing {
  /** The first part of all keys of this machine. */
  readonly root: string;
  readonly #parts: EtcdPublishingParts;
  readonly #publisher: Publisher;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;
  #hasPublished = false;

  constructor(parts: EtcdPublishingParts) {
    this.#parts = parts;
    const { gateway, machine, policy, publish, keys } = parts;
    this.root = rootOf(policy, publish, machine);
    this.#publisher = new Publisher({
      gateway,
      root: this.root,
      ownerKey: MACHINE_KEY,
      machine: machine.name,
      instance: machine.instance,
      run: RUN,
      leaseSeconds: publish.leaseSeconds,
      keys,
      onState: (fault) => this.#log(fault),
    });
    this.#done = this.#publisher.run(this.#stop.signal);
  }

  get report(): PublishReport {
    const { keys, machine } = this.#parts;
    const { fault, isHeld, lease, counts, sizes } = this.#publisher;
    return {
      state: !isHeld ? "unpublished" : fault === undefined && sizes.pending === 0 ? "current" : "behind",
      code: fault?.code ?? null,
      reason: fault?.message ?? null,
      remedy: fault?.remedy ?? null,
      machine: machine.name,
      addresses: keys.addresses,
      root: this.root,
      lease: lease ?? null,
      records: keys.wanted.size,
      leftOut: keys.leftOut,
      ...sizes,
      ...counts,
    };
  }

  /** Why it is not published, or not renewed. */
  get fault(): Fault | undefined {
    return this.#publisher.fault;
  }

  /** Whether others have this key as it is wanted. */
  has(key: string): boolean {
    return this.#publisher.has(key);
  }

  noteStored(key: string, value: string | undefined): void {
    this.#publisher.noteStored(key, value);
  }

  /** `isWithdrawn`: nothing stays; else it stays for as long as the lease, for the next run. */
  async close(isWithdrawn: boolean): Promise<void> {
    this.#stop.abort();
    await this.#done;
    if (!isWithdrawn) return;
    const { onEvent } = this.#parts;
    try {
      await this.#publisher.withdraw(AbortSignal.timeout(LIMITS.etcdWithdrawMs));
      onEvent({}, "withdrew the containers of this machine from etcd");
    } catch (error) {
      const { message: reason } = error as Fault;
      onEvent({ reason }, "cannot withdraw the containers of this machine from etcd, they end with its lease", "warn");
    }
  }

  #log(fault: Fault | undefined): void {
    const { onEvent, keys, machine } = this.#parts;
    if (fault === undefined) {
      const again = this.#hasPublished ? " again" : "";
      this.#hasPublished = true;
      onEvent({ machine: machine.name, records: keys.wanted.size }, `publishing to etcd${again}`);
      return;
    }
    const { message: reason, remedy } = fault;
    onEvent({ reason, remedy }, "cannot publish to etcd, trying again", "warn");
  }
}

/** With a slash at its end. */
function rootOf({ prefix }: EtcdPolicy, { zone }: PublishPolicy, { name }: PublishingMachine): string {
  return `${machinesPrefix(prefix, zone)}${name}/`;
}
