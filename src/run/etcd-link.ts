/**
 * EtcdLink: connects a run to etcd: what is below the prefix becomes names of containers, and the state of the
 * connection is logged and reported.
 */
import { constants } from "node:fs";
import { open } from "node:fs/promises";

import type { EtcdReport } from "../api/etcd.ts";
import { Fault, reasonOf } from "../base/lib/fault.ts";
import { LIMITS } from "../base/limits.ts";
import { ETCD_DEFAULTS, type EtcdPolicy } from "../base/model/etcd-policy.ts";
import type { ReportEvent } from "../base/model/event.ts";
import type { StoredNames } from "../container/names/etcd/stored-names.ts";
import { Gateway } from "../etcd/gateway.ts";
import { Mirror } from "../etcd/mirror.ts";

export interface EtcdLinkParts {
  /** Undefined inside a KIND node, which has no names of its own. */
  readonly names: StoredNames | undefined;
  readonly onEvent: ReportEvent;
}

/** What runs while etcd is used. */
interface Connection {
  readonly gateway: Gateway;
  readonly mirror: Mirror;
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

export class EtcdLink {
  readonly #parts: EtcdLinkParts;
  #policy: EtcdPolicy = ETCD_DEFAULTS;
  #connection: Connection | undefined;
  /** Why etcd is away; undefined while it is not, or before the first list. */
  #fault: Fault | undefined;
  #isCurrent = false;

  constructor(parts: EtcdLinkParts) {
    this.#parts = parts;
  }

  /** null where etcd is not used. */
  get report(): EtcdReport | null {
    const { names } = this.#parts;
    if (this.#connection === undefined || names === undefined) return null;
    const { gateway, mirror } = this.#connection;
    const { records, refused, ignored, skipped, problems, staleMs, isUsable } = names.report;
    return {
      state: this.#isCurrent ? "current" : isUsable ? "last-known" : "unavailable",
      code: this.#fault?.code ?? null,
      reason: this.#fault?.message ?? null,
      remedy: this.#fault?.remedy ?? null,
      staleSeconds: staleMs === undefined ? null : Math.round(staleMs / 1000),
      members: gateway.members.map((member) => ({
        endpoint: member.endpoint,
        isCurrent: member === gateway.current,
        reason: member.fault?.message ?? null,
      })),
      zones: this.#policy.zones,
      prefix: this.#policy.prefix,
      revision: mirror.revision ?? null,
      alarms: mirror.alarms,
      lists: mirror.counts.lists,
      reconnects: mirror.counts.reconnects,
      records,
      refused,
      ignored,
      skipped,
      problems,
    };
  }

  /** Connects, or connects again where a setting has changed. Existing views do not change. Throws a Fault for a file that cannot be read. */
  async configure(policy: EtcdPolicy): Promise<void> {
    const { names } = this.#parts;
    if (names === undefined || JSON.stringify(policy) === JSON.stringify(this.#policy)) return;
    const options = policy.endpoints.length === 0 ? undefined : await gatewayOptions(policy);
    await this.close();
    this.#policy = policy;
    names.configure(policy);
    if (options === undefined) return;
    const gateway = new Gateway(options);
    const stop = new AbortController();
    const mirror = new Mirror({
      gateway,
      prefix: `${policy.prefix}/`,
      keys: names,
      onState: (fault) => this.#note(fault, names),
    });
    this.#connection = { gateway, mirror, stop, done: mirror.run(stop.signal) };
  }

  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#isCurrent = false;
    this.#fault = undefined;
    if (connection === undefined) return;
    connection.stop.abort();
    connection.gateway.close();
    await connection.done;
  }

  #note(fault: Fault | undefined, names: StoredNames): void {
    const { onEvent } = this.#parts;
    const [wasCurrent, before] = [this.#isCurrent, this.#fault];
    this.#isCurrent = fault === undefined;
    this.#fault = fault;
    names.setCurrent(this.#isCurrent);
    const { records, skipped, problems } = names.report;
    if (fault === undefined && !wasCurrent) {
      onEvent({ records, skipped }, "etcd is connected");
      if (skipped > 0)
        onEvent({ skipped, first: problems.slice(0, SKIPPED_LOGGED) }, "skipped records of etcd", "warn");
    }
    if (fault !== undefined && before?.code !== fault.code) {
      onEvent(
        { reason: fault.message, remedy: fault.remedy, records },
        "etcd is away, serving the last known names",
        "warn",
      );
    }
  }
}

const SKIPPED_LOGGED = 3;

async function gatewayOptions({
  endpoints,
  ca,
  user,
  passwordFile,
}: EtcdPolicy): Promise<ConstructorParameters<typeof Gateway>[0]> {
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
    const { size } = await file.stat();
    if (size > LIMITS.etcdFileBytes) throw new Error(`it has more than ${LIMITS.etcdFileBytes} bytes`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LIMITS.etcdFileBytes));
    return buffer.toString("utf8", 0, bytesRead);
  } catch (error) {
    throw new Fault("ETCD_FILE", `cannot read ${path}: ${reasonOf(error)}`, {
      remedy: "Check the paths etcd.ca and etcd.password-file, and that they can be read.",
    });
  }
}
