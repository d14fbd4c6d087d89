import { constants } from "node:fs";
import { open as openFile } from "node:fs/promises";

import type { EtcdReport, PublishedReport } from "../../api/etcd.ts";
import type { Explanation } from "../../api/names.ts";
import type { ContainerStatus, Status } from "../../api/status.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import type { ReportEvent } from "../../base/log/log.ts";
import type { Settings } from "../../config/settings.ts";
import type { ContainerFact, NetworkFact } from "../../container/facts/fact.ts";
import type { PlacedNames } from "../../container/names/name-sources.ts";
import type { OtherMachines } from "../../container/names/services/member.ts";
import { type Family, counter, gauge, sample } from "../../metrics/exposition.ts";
import type { EngineCore, Prepared, RunCore, Running } from "../contract.ts";
import type { GatewayOptions } from "./client/gateway.ts";
import { noMirrorCounts } from "./client/mirror.ts";
import { noPublisherCounts } from "./client/publisher.ts";
import { EtcdConnection, type EtcdCounts } from "./connection.ts";
import { type EtcdPolicy, etcdOf, machineNameOf } from "./feature.ts";
import { ETCD_LIMITS } from "./limits.ts";
import { RemoteMembers } from "./machines.ts";
import { StoredNames } from "./names.ts";
import { Publication, type PublicationSettings, type PublishingMachine, publishedReport } from "./publishing.ts";

export function open(run: RunCore): Running {
  return new Etcd(run);
}

/** The machine that a run serves. */
type OwnMachine = Pick<RunCore, "hostName" | "instanceId">;

/** The names for one policy, before and while there is a connection. */
interface EtcdNames {
  readonly source: StoredNames;
  /** Undefined where nothing is published. */
  readonly machines: RemoteMembers | undefined;
}

/**
 * Connects a run to etcd: what is below the prefix becomes names of containers, those of this machine are published, and the state
 * of the connection is logged and reported. A reload connects with other settings before they are in force.
 */
class Etcd implements Running {
  readonly #machine: OwnMachine;
  readonly #onEvent: ReportEvent;
  readonly #onNames: () => void;
  readonly #first: Settings;
  #policy: EtcdPolicy;
  #names: EtcdNames;
  /** What the connection has from files. */
  #options: GatewayOptions | undefined;
  #connection: EtcdConnection | undefined;
  /** Those of the run: a reload takes nothing from a total. */
  readonly #counts: EtcdCounts = { mirror: noMirrorCounts(), publisher: noPublisherCounts() };
  /** What to publish; undefined inside of a KIND node. */
  #publication: Publication | undefined;
  /** No other process serves any more, so this one publishes. */
  #isServing = false;
  /** The connection before, while it ends. */
  #ending: Promise<void> = Promise.resolve();

  constructor({ settings, hostName, instanceId, onEvent, onNames }: RunCore) {
    this.#first = settings;
    this.#policy = etcdOf(settings);
    this.#machine = { hostName, instanceId };
    this.#onEvent = onEvent;
    this.#onNames = onNames;
    this.#names = this.#namesFor(this.#policy);
  }

  get names(): PlacedNames {
    return { place: "shared", source: this.#names.source };
  }

  get machines(): OtherMachines | undefined {
    return this.#names.machines;
  }

  engine({ directory }: EngineCore): void {
    const settings = this.#publicationSettings(this.#first);
    const networkOf = (id: string): NetworkFact | undefined => directory().network(id);
    this.#publication = new Publication(settings, networkOf, () => directory().containers.values());
  }

  /** Throws a Fault for a file that cannot be read. */
  async start(): Promise<void> {
    this.#options = await this.#read(this.#policy);
    this.#connection = this.#open(this.#policy, this.#names, this.#options);
  }

  serving(): void {
    this.#isServing = true;
    this.#publish();
  }

  /** Connects where a setting or a file has changed, and waits for the first list, but not for long. Throws a Fault as `start`. */
  async prepare(all: Settings): Promise<Prepared> {
    const policy = etcdOf(all);
    const options = await this.#read(policy);
    const configure = (): void => this.#publication?.configure(this.#publicationSettings(all));
    if (JSON.stringify([policy, options]) === JSON.stringify([this.#policy, this.#options])) {
      const { names, machines } = this;
      return { names, machines, commit: configure, discard: async () => await Promise.resolve() };
    }
    const names = this.#namesFor(policy);
    const connection = this.#open(policy, names, options);
    await connection?.settled();
    return {
      names: { place: "shared", source: names.source },
      machines: names.machines,
      commit: () => {
        configure();
        this.#options = options;
        this.#succeed(policy, names, connection);
      },
      discard: async () => await connection?.close(false),
    };
  }

  put(fact: ContainerFact): void {
    this.#publication?.put(fact);
  }

  remove(id: string): void {
    this.#publication?.remove(id);
  }

  synced(): void {
    this.#publication?.setComplete();
  }

  status(): Pick<Status, "etcd"> {
    return { etcd: this.#connection?.report ?? null };
  }

  container(id: string): Pick<ContainerStatus, "published"> {
    const published = this.#publishedOf(id);
    return published === undefined ? {} : { published };
  }

  /** Those of them that are members of services. */
  explained(containers: readonly ContainerFact[]): Pick<Explanation, "published"> {
    const published = containers.flatMap(({ id, name: container }) => {
      const report = this.#publishedOf(id);
      return report === undefined ? [] : [{ ...report, container }];
    });
    return published.length === 0 ? {} : { published };
  }

  metrics(): readonly Family[] {
    return this.#connection === undefined ? [] : etcdFamilies(this.#connection.report);
  }

  /** What is published is withdrawn, unless another process goes on with it. */
  async closing(isHandedOver: boolean): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    await this.#ending;
    await connection?.close(!isHandedOver);
  }

  /** Undefined where nothing is published, or it does not run. */
  #publishedOf(id: string): PublishedReport | undefined {
    const published = this.#isServing ? this.#publication?.of(id) : undefined;
    const { publish } = this.#policy;
    if (published === undefined || publish === undefined) return undefined;
    return publishedReport(published, publish.zone, this.#connection?.publishing);
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
    if (!this.#isServing || this.#publication === undefined || machine === undefined) return;
    this.#connection?.publish(machine, this.#publication);
  }

  #publicationSettings(all: Settings): PublicationSettings {
    const { publish: policy } = etcdOf(all);
    const machine = (policy && machineNameOf(policy, this.#machine.hostName)) ?? "";
    return { policy, machine, labels: all.labels, ttlSeconds: all.behaviour.ttlSeconds };
  }

  #namesFor(policy: EtcdPolicy): EtcdNames {
    const { publish, prefix, staleSecondsMax } = policy;
    const machine = machineOf(policy, this.#machine);
    const machines =
      publish === undefined || machine === undefined
        ? undefined
        : new RemoteMembers({ ...publish, prefix, staleSecondsMax, machine: machine.name });
    const source = new StoredNames(policy);
    source.onChange = this.#onNames;
    return { source, machines };
  }

  /** Undefined where etcd is not used. */
  async #read(policy: EtcdPolicy): Promise<GatewayOptions | undefined> {
    if (policy.endpoints.length === 0) return undefined;
    if (policy.publish !== undefined && machineOf(policy, this.#machine) === undefined)
      throw namelessFault(this.#machine.hostName);
    return await gatewayOptions(policy);
  }

  #open(
    policy: EtcdPolicy,
    { source, machines }: EtcdNames,
    options: GatewayOptions | undefined,
  ): EtcdConnection | undefined {
    if (options === undefined) return undefined;
    const [onEvent, counts] = [this.#onEvent, this.#counts];
    return new EtcdConnection({ policy, names: source, remote: machines, onEvent, options, counts });
  }
}

export function etcdFamilies(report: EtcdReport): Family[] {
  const { state, staleSeconds, records, skipped, refused, lists, reconnects } = report;
  return [
    gauge("dns11_etcd_up", "1 while the names are those of etcd, 0 while they are the last known ones or none.", [
      sample(Number(state === "current")),
    ]),
    gauge("dns11_etcd_stale_seconds", "How long etcd has not confirmed the names that are answered; 0 while it does.", [
      sample(staleSeconds ?? 0),
    ]),
    gauge("dns11_etcd_records", "Records of etcd that are names.", [sample(records)]),
    gauge("dns11_etcd_skipped_records", "Records of etcd that are left out: invalid, or too many.", [
      sample(skipped, { reason: "invalid" }),
      sample(refused, { reason: "limit" }),
    ]),
    counter("dns11_etcd_lists_total", "How often all records were read.", [sample(lists)]),
    counter("dns11_etcd_reconnects_total", "How often the stream of changes ended.", [sample(reconnects)]),
    ...publishFamilies(report),
  ];
}

/** Gives none where nothing is published. */
function publishFamilies({ publishing, machines }: EtcdReport): Family[] {
  if (publishing === null || machines === null) return [];
  const { state, records, pending, leftOut, writes, transactions, failures, losses } = publishing;
  return [
    gauge("dns11_etcd_published", "1 while everything that is to be published is in etcd, otherwise 0.", [
      sample(Number(state === "current")),
    ]),
    gauge("dns11_etcd_published_containers", "Containers of this machine, by what becomes of them in etcd.", [
      sample(records, { state: "published" }),
      sample(leftOut, { state: "unreachable" }),
    ]),
    gauge("dns11_etcd_pending_writes", "Changes that are to be written to etcd.", [sample(pending)]),
    counter("dns11_etcd_writes_total", "Keys that were written to etcd or deleted there.", [sample(writes)]),
    counter("dns11_etcd_transactions_total", "Transactions that wrote them.", [sample(transactions)]),
    counter("dns11_etcd_write_failures_total", "Failed attempts to write to etcd or to renew the lease.", [
      sample(failures),
    ]),
    counter("dns11_etcd_lease_losses_total", "How often the lease had ended and everything was published again.", [
      sample(losses),
    ]),
    gauge("dns11_etcd_machines", "Other machines that publish containers.", [sample(machines.machines)]),
    gauge("dns11_etcd_remote_containers", "Containers of other machines, by what becomes of them.", [
      sample(machines.members, { state: "known" }),
      sample(machines.skipped, { state: "invalid" }),
      sample(machines.refused, { state: "limit" }),
    ]),
  ];
}

/** Undefined where nothing is published, or the machine has no name. */
function machineOf({ publish }: EtcdPolicy, { hostName, instanceId }: OwnMachine): PublishingMachine | undefined {
  const name = publish === undefined ? undefined : machineNameOf(publish, hostName);
  return name === undefined ? undefined : { name, instance: instanceId };
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
    await using file = await openFile(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) throw new Error("it is not a regular file");
    const { buffer, bytesRead } = await file.read(Buffer.alloc(ETCD_LIMITS.fileBytes + 1));
    if (bytesRead > ETCD_LIMITS.fileBytes) throw new Error(`it has more than ${ETCD_LIMITS.fileBytes} bytes`);
    return buffer.toString("utf8", 0, bytesRead);
  } catch (error) {
    throw new Fault("ETCD_FILE", `cannot read ${path}: ${reasonOf(error)}`, {
      remedy: "Check the paths etcd.ca and etcd.password-file, and that they can be read.",
    });
  }
}
