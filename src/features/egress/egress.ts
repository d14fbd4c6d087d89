import { featureValues } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";
import { openHostNetwork } from "../../container/namespace/engine-host.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import { type Family, counter, gauge, sample } from "../../metrics/exposition.ts";
import type { RunCore, Running } from "../contract.ts";
import { EGRESS } from "./feature.ts";
import { Recording } from "./recording.ts";
import { egressRoutes } from "./report.ts";
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { presentation } from "../../base/dns/name.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { addressText } from "../../base/model/address.ts";
import { HASH_BASIS, hashByte } from "../../base/model/label-table.ts";
import type { QueryNames } from "../../base/model/query-record.ts";
import type { OutcomeNote } from "../../query/client/client.ts";
import type { QueryObserver } from "../../query/client/clients.ts";
import { FOUND_MAX, addressAt, addressSize, findAddresses } from "../../query/history/query-history.ts";
import { type Outcome, STAGE } from "../../query/record/outcome.ts";
import { TablesByContainer } from "../../query/record/tables-by-container.ts";
import { EGRESS_LIMITS } from "./limits.ts";

export function open({ settings: first, onNames, observe }: RunCore): Running {
  const answered = new AnsweredTables();
  observe(answered);
  /** Undefined inside of a KIND node. */
  let recording: Recording | undefined;
  const configure = (settings: Settings): void => {
    const { egress: isOn } = featureValues(EGRESS.settings, settings);
    answered.configure(isOn, settings.queries.names);
    // What is repeated without the process would not be noted.
    if (isOn && recording?.isOn === false) onNames();
    void recording?.setOn(isOn);
  };
  return {
    engine: ({ links, directory, host, runner, memory }) => {
      recording = new Recording({
        links,
        containers: () => directory().containers.values(),
        networkId: () => host().networkId,
        openNetns: () => {
          const fd = openHostNetwork(host());
          return { netns: runner.namespaceOf(fd, memory), close: () => closeQuietly(fd) };
        },
        namesOf: (id, address, untilMs) => answered.of(id, address, untilMs),
      });
    },
    start: () => configure(first),
    configure,
    put: (fact) => recording?.put(fact),
    remove: (id) => recording?.remove(id),
    engineConnected: () => void recording?.hostChanged(),
    routes: (ports) => egressRoutes(ports, recording, () => answered.hasNames),
    metrics: () => (recording?.readings === undefined ? [] : familiesOf(recording.readings)),
    close: () => recording?.close(),
  };
}

type Readings = NonNullable<Recording["readings"]>;

function familiesOf({ asked, unasked, recorded, incomplete }: Readings): Family[] {
  return [
    counter(
      "dns11_egress_connections_total",
      "Connections of containers: to addresses that they were answered with, and to others. Read every 30 s.",
      [sample(asked, { name: "asked" }), sample(unasked, { name: "none" })],
    ),
    gauge("dns11_egress_containers", "Containers whose connections are recorded.", [
      sample(recorded - incomplete, { state: "complete" }),
      sample(incomplete, { state: "incomplete" }),
    ]),
  ];
}

/** Whether answers are noted. One object is shared by all containers; it changes with the settings. */
interface AnsweredPolicy {
  isOn: boolean;
  /** Names may be shown. */
  hasNames: boolean;
}

interface AnsweredName {
  readonly name: string;
  readonly firstMs: number;
}

/** Answers that were noted lately, by their hash. */
const LATELY = 256;
/** The times of answers and of connections are both known to a few milliseconds. */
const TOLERANCE_MS = 1_000;

/**
 * The names that one container was answered an address with. It is written on the query path: an answer that was there lately costs
 * a hash over its name and addresses, and nothing else.
 */
export class AnsweredNames implements OutcomeNote {
  readonly #policy: AnsweredPolicy;
  #lately: Int32Array | undefined;
  /** The address that was noted last is at the end. */
  readonly #names = new Map<string, readonly AnsweredName[]>();

  constructor(policy: AnsweredPolicy) {
    this.#policy = policy;
  }

  get isEmpty(): boolean {
    return this.#names.size === 0;
  }

  /** Notes the addresses of an answer. */
  note(outcome: Outcome): void {
    if (!this.#policy.isOn) return;
    const { type, rcode, stage } = outcome;
    const size = addressSize(type);
    if (size === 0 || rcode !== RCODE.NOERROR || stage === STAGE.deferred) return;
    const count = findAddresses(outcome, FOUND_MAX, FOUND_MAX);
    if (count === 0) return;
    const lately = (this.#lately ??= new Int32Array(LATELY));
    const hash = hashOf(outcome, size, count);
    const slot = hash & (LATELY - 1);
    if (lately[slot] === hash) return;
    lately[slot] = hash;
    this.#add(outcome, size, count);
  }

  /** The names that were answered with an address until then, on the clock of `Date.now`; the latest comes last. */
  of(address: string, untilMs: number): readonly string[] {
    const names = this.#policy.hasNames ? this.#names.get(address) : undefined;
    return (names ?? []).filter(({ firstMs }) => firstMs <= untilMs + TOLERANCE_MS).map(({ name }) => name);
  }

  clear(): void {
    this.#names.clear();
    this.#lately = undefined;
  }

  #add({ question, at, nameEnd, reply }: Outcome, size: number, count: number): void {
    const name = presentation(question, at + HEADER_BYTES, nameEnd - 1).toLowerCase();
    const firstMs = Date.now();
    for (let index = 0; index < count; index++) {
      const start = addressAt[index] as number;
      const address = addressText(reply.subarray(start, start + size));
      const known = this.#names.get(address) ?? [];
      const others = known.filter((each) => each.name !== name);
      const before = known.find((each) => each.name === name);
      this.#names.delete(address);
      this.#names.set(address, [...others, before ?? { name, firstMs }].slice(-EGRESS_LIMITS.names));
      if (this.#names.size > EGRESS_LIMITS.addresses) this.#dropOldest();
    }
  }

  #dropOldest(): void {
    for (const address of this.#names.keys()) {
      this.#names.delete(address);
      // Its answer is to be noted again.
      this.#lately?.fill(0);
      return;
    }
  }
}

/** Those of all containers. Of one that has ended they are kept for a moment: its last connections are read after it. */
export class AnsweredTables implements QueryObserver {
  readonly #policy: AnsweredPolicy = { isOn: false, hasNames: false };
  readonly #tables: TablesByContainer<AnsweredNames>;

  constructor(now: () => number = () => performance.now()) {
    this.#tables = new TablesByContainer(EGRESS_LIMITS.lingerMs, now);
  }

  /** Whether names may be shown. */
  get hasNames(): boolean {
    return this.#policy.hasNames;
  }

  /** What is noted from now on; what would no longer be noted is dropped. */
  configure(isOn: boolean, names: QueryNames): void {
    this.#policy.hasNames = names === "full";
    this.#policy.isOn = isOn && this.#policy.hasNames;
    if (this.#policy.isOn) return;
    for (const table of this.#tables.all()) table.clear();
  }

  open(containerId: string): AnsweredNames {
    return this.#tables.open(containerId, () => new AnsweredNames(this.#policy));
  }

  close(containerId: string): void {
    this.#tables.close(containerId, ({ isEmpty }) => !isEmpty);
  }

  of(containerId: string, address: string, untilMs: number): readonly string[] {
    return this.#tables.get(containerId)?.of(address, untilMs) ?? [];
  }
}

/** The same for the same addresses in another order. */
function hashOf({ question, reply, at, nameEnd }: Outcome, size: number, count: number): number {
  let hash = HASH_BASIS;
  for (let index = at + HEADER_BYTES; index < nameEnd; index++) hash = hashByte(hash, question[index] as number);
  let sum = hash;
  for (let index = 0; index < count; index++) {
    const start = addressAt[index] as number;
    let each = hash;
    for (let i = 0; i < size; i++) each = hashByte(each, reply[start + i] as number);
    sum = (sum + each) | 0;
  }
  // 0 is an empty slot.
  return sum === 0 ? 1 : sum;
}
