/**
 * EtcdLink: connects a run to etcd: what is below the prefix becomes names of containers, and the state of the
 * connection is logged and reported. A reload connects with other settings before they are in force.
 */
import { constants } from "node:fs";
import { open } from "node:fs/promises";

import type { EtcdReport } from "../../api/etcd.ts";
import type { PublishedReport } from "../../api/published.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";
import type { EtcdPolicy } from "../../base/model/etcd-policy.ts";
import type { ReportEvent } from "../../base/model/event.ts";
import { machineNameOf } from "../../config/etcd-values.ts";
import { StoredNames } from "../../container/names/etcd/stored-names.ts";
import type { SharedNames } from "../../container/names/shared-names.ts";
import { RemoteMembers } from "../../container/names/zone/remote-members.ts";
import type { Publication, Published } from "../../container/publish/publication.ts";
import type { GatewayOptions } from "../../etcd/gateway.ts";
import { EtcdConnection } from "./etcd-connection.ts";
import type { PublishingMachine } from "./etcd-publishing.ts";

/** The publisher; undefined before there is one. */
type Publishing = { readonly root: string; readonly fault: Fault | undefined; has(key: string): boolean } | undefined;

/** Other settings that are not in force yet. */
export interface PreparedEtcd {
  readonly names: SharedNames;
  /** Puts these settings in force. */
  apply(): void;
  /** Ends what was prepared, because these settings will not be in force. */
  discard(): Promise<void>;
}

/** The machine that a run serves. */
export interface OwnMachine {
  /** The host name of its engine. */
  readonly hostName: string;
  readonly instance: string;
}

/** The names for one policy, before and while there is a connection. */
interface EtcdNames extends SharedNames {
  readonly source: StoredNames;
  readonly remote: RemoteMembers | undefined;
}

export class EtcdLink {
  readonly #machine: OwnMachine;
  readonly #onEvent: ReportEvent;
  readonly #onNames: () => void;
  #policy: EtcdPolicy;
  #names: EtcdNames;
  #connection: EtcdConnection | undefined;
  /** What to publish, from the time on that containers are served. */
  #keys: Publication | undefined;
  /** The connection before, while it ends. */
  #ending: Promise<void> = Promise.resolve();

  /** `onNames`: called in the step in which names change. */
  constructor(policy: EtcdPolicy, machine: OwnMachine, onEvent: ReportEvent, onNames: () => void) {
    this.#policy = policy;
    this.#machine = machine;
    this.#onEvent = onEvent;
    this.#onNames = onNames;
    this.#names = this.#namesFor(policy);
  }

  /** The names of the settings in force. */
  get names(): SharedNames {
    return this.#names;
  }

  /** null where etcd is not used. */
  get report(): EtcdReport | null {
    return this.#connection?.report ?? null;
  }

  /** What becomes of a container; undefined where nothing is published, or it does not run. */
  publishedOf(id: string): PublishedReport | undefined {
    const published = this.#keys?.of(id);
    const { publish } = this.#policy;
    if (published === undefined || publish === undefined) return undefined;
    return publishedReport(published, publish.zone, this.#connection?.publishing);
  }

  /** Throws a Fault for a file that cannot be read. */
  async start(): Promise<void> {
    this.#connection = await this.#open(this.#policy, this.#names);
  }

  /** This process serves now: what it publishes is what is there. */
  publish(keys: Publication | undefined): void {
    this.#keys = keys;
    this.#publish();
  }

  /** Connects where a setting has changed, and waits for the first list, but not for long. Throws a Fault as `start`. */
  async prepare(policy: EtcdPolicy): Promise<PreparedEtcd> {
    if (JSON.stringify(policy) === JSON.stringify(this.#policy)) {
      return { names: this.#names, apply: () => undefined, discard: async () => await Promise.resolve() };
    }
    const names = this.#namesFor(policy);
    const connection = await this.#open(policy, names);
    await connection?.settled();
    return {
      names,
      apply: () => this.#succeed(policy, names, connection),
      discard: async () => await connection?.close(false),
    };
  }

  /** `isWithdrawn`: what is published ends with it; else another process goes on with it. */
  async close(isWithdrawn: boolean): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    await this.#ending;
    await connection?.close(isWithdrawn);
  }

  #succeed(policy: EtcdPolicy, names: EtcdNames, connection: EtcdConnection | undefined): void {
    const before = this.#connection;
    // The next publisher goes on below the same key; what is published elsewhere is not.
    const isSamePlace = JSON.stringify(placeOf(policy)) === JSON.stringify(placeOf(this.#policy));
    this.#policy = policy;
    this.#names = names;
    this.#connection = connection;
    this.#ending = this.#after(before, isSamePlace, connection);
  }

  /** Publishes when the connection before has ended, unless there is another one by then. */
  async #after(
    before: EtcdConnection | undefined,
    isSamePlace: boolean,
    connection: EtcdConnection | undefined,
  ): Promise<void> {
    await before?.close(!isSamePlace);
    if (this.#connection === connection) this.#publish();
  }

  #publish(): void {
    const machine = machineOf(this.#policy, this.#machine);
    if (this.#keys !== undefined && machine !== undefined) this.#connection?.publish(machine, this.#keys);
  }

  #namesFor(policy: EtcdPolicy): EtcdNames {
    const { publish, prefix, staleSecondsMax } = policy;
    const machine = machineOf(policy, this.#machine);
    const remote =
      publish === undefined || machine === undefined
        ? undefined
        : new RemoteMembers({ ...publish, prefix, staleSecondsMax, machine: machine.name });
    const source = new StoredNames(policy);
    source.onChange = this.#onNames;
    return { source, remote };
  }

  async #open(policy: EtcdPolicy, { source, remote }: EtcdNames): Promise<EtcdConnection | undefined> {
    if (policy.endpoints.length === 0) return undefined;
    if (policy.publish !== undefined && remote === undefined) throw namelessFault(this.#machine.hostName);
    const options = await gatewayOptions(policy);
    return new EtcdConnection({ policy, names: source, remote, onEvent: this.#onEvent, options });
  }
}

/** Undefined where nothing is published, or the machine has no name. */
function machineOf({ publish }: EtcdPolicy, { hostName, instance }: OwnMachine): PublishingMachine | undefined {
  const name = publish === undefined ? undefined : machineNameOf(publish, hostName);
  return name === undefined ? undefined : { name, instance };
}

/** Where keys are published. */
function placeOf({ endpoints, prefix, publish }: EtcdPolicy): object {
  return { endpoints, prefix, zone: publish?.zone, machine: publish?.machine };
}

function namelessFault(hostName: string): Fault {
  return new Fault("ETCD_MACHINE", `the host name of the engine, "${hostName}", cannot name this machine in etcd`, {
    remedy: "Set etcd.machine to letters, digits and hyphens, at most 32.",
  });
}

async function gatewayOptions({ endpoints, ca, user, passwordFile }: EtcdPolicy): Promise<GatewayOptions> {
  const password = passwordFile === undefined ? "" : (await readFileText(passwordFile)).replace(/\r?\n$/, "");
  return {
    endpoints,
    ca: ca === undefined ? undefined : await readFileText(ca),
    user: user === undefined ? undefined : { name: user, password },
  };
}

/** A regular file of the operator, within a limit. */
async function readFileText(path: string): Promise<string> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) throw new Error("it is not a regular file");
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LIMITS.etcdFileBytes + 1));
    if (bytesRead > LIMITS.etcdFileBytes) throw new Error(`it has more than ${LIMITS.etcdFileBytes} bytes`);
    return buffer.toString("utf8", 0, bytesRead);
  } catch (error) {
    throw new Fault("ETCD_FILE", `cannot read ${path}: ${reasonOf(error)}`, {
      remedy: "Check the paths etcd.ca and etcd.password-file, and that they can be read.",
    });
  }
}

/** What becomes of one container in etcd, from what is wanted of it and what the publisher has written. */
export function publishedReport(published: Published, zone: string, publishing: Publishing): PublishedReport {
  if ("leftOut" in published) {
    const nowhere = { zone, key: null, names: [], addresses: [], ports: [] };
    return { state: "unpublished", ...whyOf(published.leftOut), ...nowhere };
  }
  const { key, ...place } = published;
  const isWritten = publishing?.has(key) === true;
  return {
    state: isWritten ? "published" : publishing?.fault === undefined ? "pending" : "unpublished",
    ...whyOf(isWritten ? undefined : publishing?.fault),
    zone,
    key: publishing === undefined ? null : publishing.root + key,
    ...place,
  };
}

function whyOf(fault: Fault | undefined): Pick<PublishedReport, "code" | "reason" | "remedy"> {
  return { code: fault?.code ?? null, reason: fault?.message ?? null, remedy: fault?.remedy ?? null };
}
