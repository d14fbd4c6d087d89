/**
 * Journal: the changes to undo in each node, on disk, so that they survive a kill of dns11. One file per container, replaced
 * atomically: a reader sees either the old or the new record.
 */
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import { Fault, codeOf, reasonOf } from "../../base/lib/fault.ts";
import { addressBytes } from "../../base/model/address.ts";
import type { ContainerFact } from "../facts/fact.ts";

const VERSION = 1;
const ENDING = ".json";
const CONTAINER_ID = /^[0-9a-f]{1,64}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
/** The kernel's limits for an interface name. */
const DEVICE = /^(?!\.\.?$)[^/\s]{1,15}$/;

export interface ChangeRecord {
  readonly version: 1;
  readonly containerId: string;
  readonly name: string;
  /** Identifies this start of the container; a restart resets everything and voids the record. */
  readonly startedAt: string;
  readonly sandboxKey: string;
  readonly pid: number;
  /** What settings asked for at that time. */
  readonly wish: string;
  readonly resolvConf?: ResolvConfRecord;
  /** The addresses added to lo. */
  readonly addresses: readonly { readonly address: string; readonly prefixLength: number }[];
  /** See LocalnetRecord. */
  readonly routeLocalnet: Readonly<Record<string, string>>;
  readonly openBefore?: readonly number[];
  /** Every address advertised since this start, the newest last. */
  readonly published: readonly string[];
}

export interface ResolvConfRecord {
  /** The path as the engine reports it. */
  readonly path: string;
  /** Base64, because both may contain any bytes. */
  readonly original: string;
  readonly written: string;
  /** Restored instead of the original if KIND's entrypoint has run since and sets a search list. */
  readonly afterwards?: string;
}

/** A record of no change yet. `wish`: see ChangeRecord. */
export function newRecord(
  { id, name, startedAt, sandboxKey, pid }: Pick<ContainerFact, "id" | "name" | "startedAt" | "sandboxKey" | "pid">,
  wish: string,
): ChangeRecord {
  const nothing = { wish, addresses: [], routeLocalnet: {}, published: [] };
  return { version: VERSION, containerId: id, name, startedAt, sandboxKey, pid, ...nothing };
}

/** A damaged file is not an error: `damaged` says why it was ignored, for the caller to report. */
interface JournalEntry {
  readonly record?: ChangeRecord;
  readonly damaged?: string;
}

export class Journal {
  readonly #folder: string;
  #hasFolder = false;

  /** `instanceFolder`: the state directory of an instance, which is its only writer. */
  constructor(instanceFolder: string) {
    this.#folder = join(instanceFolder, "nodes");
  }

  read(containerId: string): JournalEntry {
    const path = this.#pathOf(containerId);
    try {
      return { record: recordIn(readFileSync(path, "utf8"), containerId) };
    } catch (error) {
      return codeOf(error) === "ENOENT" ? {} : { damaged: `ignored the damaged record "${path}": ${reasonOf(error)}` };
    }
  }

  all(): { readonly records: readonly ChangeRecord[]; readonly damaged: readonly string[] } {
    const entries = this.#ids().map((id) => this.read(id));
    return {
      records: entries.map(({ record }) => record).filter((record) => record !== undefined),
      damaged: entries.map(({ damaged }) => damaged).filter((damaged) => damaged !== undefined),
    };
  }

  /**
   * When it returns, the record survives a crash of dns11, and of the host as well where it tells of resolv.conf. All else
   * is in the node's network namespace, which ends with the host; so nothing waits for the disk.
   */
  write(record: ChangeRecord): void {
    const path = this.#pathOf(record.containerId);
    const partial = `${path}.partial`;
    const outlivesHost = record.resolvConf !== undefined;
    try {
      this.#makeFolder();
      writeWhole(partial, `${JSON.stringify(record)}\n`, outlivesHost);
      renameSync(partial, path);
      if (outlivesHost) syncFolder(this.#folder);
    } catch (error) {
      throw new Fault("JOURNAL", `Cannot save the undo record of node "${record.name}" in "${path}"`, {
        cause: error,
        remedy:
          "dns11 changes nothing in a node before this record is saved. Free some space there, or set another --state-dir.",
      });
    }
  }

  remove(containerId: string): void {
    const path = this.#pathOf(containerId);
    rmSync(path, { force: true });
    rmSync(`${path}.partial`, { force: true });
  }

  /** Once in a run: to do it again would take as long as the rest. */
  #makeFolder(): void {
    if (this.#hasFolder && existsSync(this.#folder)) return;
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    chmodSync(this.#folder, 0o700);
    this.#hasFolder = true;
  }

  #ids(): readonly string[] {
    try {
      return readdirSync(this.#folder)
        .filter((name) => name.endsWith(ENDING))
        .map((name) => name.slice(0, -ENDING.length))
        .filter((id) => CONTAINER_ID.test(id))
        .toSorted();
    } catch {
      return [];
    }
  }

  #pathOf(containerId: string): string {
    if (!CONTAINER_ID.test(containerId)) throw new Error(`Invalid container ID "${containerId}"`);
    return join(this.#folder, `${containerId}${ENDING}`);
  }
}

/** A killed instance may have left one. */
function writeWhole(path: string, text: string, isSynced: boolean): void {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;
  const fd = openSync(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600);
  try {
    writeFileSync(fd, text);
    if (isSynced) fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** A rename is on disk only after an fsync of its folder. */
function syncFolder(path: string): void {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isBytes: Check = (value) => typeof value === "string" && BASE64.test(value);
const isAddress: Check = (value) => typeof value === "string" && addressBytes(value) !== undefined;
const isCount: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
const isPrefixLength: Check = (value) => isCount(value) && Number(value) <= 128;
const isPath: Check = (value) => typeof value === "string" && value.startsWith("/");

/** Undoing relies on these checks: an interface name becomes a path, and an address is removed from a node. */
const RECORD: Readonly<Record<keyof ChangeRecord, Check>> = {
  version: (value) => value === VERSION,
  containerId: isText,
  name: isText,
  startedAt: isText,
  sandboxKey: isText,
  pid: isCount,
  wish: isText,
  resolvConf: (value) =>
    value === undefined ||
    has(value, {
      path: isPath,
      original: isBytes,
      written: isBytes,
      afterwards: (bytes) => bytes === undefined || isBytes(bytes),
    }),
  addresses: listOf((value) => has(value, { address: isAddress, prefixLength: isPrefixLength })),
  routeLocalnet: (value) =>
    isObject(value) &&
    Object.entries(value).every(([device, before]) => DEVICE.test(device) && /^\d+$/.test(String(before))),
  openBefore: (value) => value === undefined || listOf(isCount)(value),
  published: listOf(isAddress),
};

function recordIn(text: string, containerId: string): ChangeRecord {
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) throw new Error("Not a record");
  if (!RECORD.version(value["version"])) throw new Error("Unsupported version of the record");
  const wrong = Object.entries(RECORD).find(([key, check]) => !check(value[key]));
  if (wrong !== undefined) throw new Error(`Invalid value of "${wrong[0]}"`);
  if (value["containerId"] !== containerId) throw new Error("The record belongs to another container");
  return value as unknown as ChangeRecord;
}

function has(value: unknown, checks: Readonly<Record<string, Check>>): boolean {
  return isObject(value) && Object.entries(checks).every(([key, check]) => check(value[key]));
}

function listOf(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
