/**
 * EtcdLink: connects a run to etcd: what is below the prefix becomes names of containers, and the state of the
 * connection is logged and reported. A reload connects with other settings before they are in force.
 */
import { constants } from "node:fs";
import { open } from "node:fs/promises";

import type { EtcdReport } from "../api/etcd.ts";
import { Fault, reasonOf } from "../base/lib/fault.ts";
import { LIMITS } from "../base/limits.ts";
import type { EtcdPolicy } from "../base/model/etcd-policy.ts";
import type { ReportEvent } from "../base/model/event.ts";
import { StoredNames } from "../container/names/etcd/stored-names.ts";
import type { GatewayOptions } from "../etcd/gateway.ts";
import { EtcdConnection } from "./etcd-connection.ts";

/** Other settings that are not in force yet. */
export interface PreparedEtcd {
  readonly names: StoredNames;
  /** They are in force from now on. */
  apply(): void;
  /** They will not be. */
  discard(): Promise<void>;
}

export class EtcdLink {
  readonly #onEvent: ReportEvent;
  readonly #onNames: () => void;
  #policy: EtcdPolicy;
  #names: StoredNames;
  #connection: EtcdConnection | undefined;

  /** `onNames`: called in the step in which names change. */
  constructor(policy: EtcdPolicy, onEvent: ReportEvent, onNames: () => void) {
    this.#policy = policy;
    this.#onEvent = onEvent;
    this.#onNames = onNames;
    this.#names = this.#newNames(policy);
  }

  /** Those of the settings in force. */
  get names(): StoredNames {
    return this.#names;
  }

  /** null where etcd is not used. */
  get report(): EtcdReport | null {
    return this.#connection?.report ?? null;
  }

  /** Throws a Fault for a file that cannot be read. */
  async start(): Promise<void> {
    this.#connection = await this.#open(this.#policy, this.#names);
  }

  /** Connects where a setting has changed, and waits for the first list, but not for long. Throws a Fault as `start`. */
  async prepare(policy: EtcdPolicy): Promise<PreparedEtcd> {
    if (JSON.stringify(policy) === JSON.stringify(this.#policy)) {
      return { names: this.#names, apply: () => undefined, discard: async () => await Promise.resolve() };
    }
    const names = this.#newNames(policy);
    const connection = await this.#open(policy, names);
    await connection?.settled();
    return {
      names,
      apply: () => {
        void this.close();
        this.#policy = policy;
        this.#names = names;
        this.#connection = connection;
      },
      discard: async () => await connection?.close(),
    };
  }

  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.close();
  }

  #newNames(policy: EtcdPolicy): StoredNames {
    const names = new StoredNames(policy);
    names.onChange = this.#onNames;
    return names;
  }

  async #open(policy: EtcdPolicy, names: StoredNames): Promise<EtcdConnection | undefined> {
    if (policy.endpoints.length === 0) return undefined;
    return new EtcdConnection({ policy, names, onEvent: this.#onEvent, options: await gatewayOptions(policy) });
  }
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
