/**
 * Journal: what has to be undone in each node, on disk, so that it is known also after we were killed. One file a
 * container, put in its place whole: whoever reads it finds the record before or the record after.
 */
import {
  chmodSync,
  closeSync,
  constants,
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

const VERSION = 1;
const ENDING = ".json";
const CONTAINER_ID = /^[0-9a-f]{1,64}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
/** The kernel allows no more in the name of a device, and no slash. */
const DEVICE = /^(?!\.\.?$)[^/\s]{1,15}$/;

export interface NodeRecord {
  readonly version: 1;
  readonly containerId: string;
  readonly name: string;
  /** Which start of the container: another one has made everything anew, and voids the record. */
  readonly startedAt: string;
  readonly sandboxKey: string;
  readonly pid: number;
  /** What settings asked to be published then. */
  readonly wish: string;
  readonly resolvConf?: ResolvConfRecord;
  /** What was added to lo. */
  readonly addresses: readonly { readonly address: string; readonly prefixLength: number }[];
  /** See LocalnetRecord. */
  readonly routeLocalnet: Readonly<Record<string, string>>;
  readonly openBefore?: readonly number[];
  /** Every address that was published in this life, the newest last. */
  readonly published: readonly string[];
}

export interface ResolvConfRecord {
  /** As the engine names it. */
  readonly path: string;
  /** Base64, as both may hold any bytes. */
  readonly original: string;
  readonly written: string;
  /** What is put back instead of the original, where KIND's entrypoint has run since and has a search list to give. */
  readonly afterwards?: string;
}

/** A damaged file is no reason to fail: it says why it was left out, and whoever asks may tell somebody. */
export interface JournalEntry {
  readonly record?: NodeRecord;
  readonly damaged?: string;
}

export class Journal {
  readonly #folder: string;

  /** In the folder of an instance, which alone writes there. */
  constructor(instanceFolder: string) {
    this.#folder = join(instanceFolder, "nodes");
  }

  read(containerId: string): JournalEntry {
    const path = this.#pathOf(containerId);
    try {
      return { record: recordIn(readFileSync(path, "utf8"), containerId) };
    } catch (error) {
      return codeOf(error) === "ENOENT" ? {} : { damaged: `"${path}" is left out: ${reasonOf(error)}` };
    }
  }

  all(): { readonly records: readonly NodeRecord[]; readonly damaged: readonly string[] } {
    const entries = this.#ids().map((id) => this.read(id));
    return {
      records: entries.map(({ record }) => record).filter((record) => record !== undefined),
      damaged: entries.map(({ damaged }) => damaged).filter((damaged) => damaged !== undefined),
    };
  }

  /** When it returns, the record outlives us and the machine. */
  write(record: NodeRecord): void {
    const path = this.#pathOf(record.containerId);
    const partial = `${path}.partial`;
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      chmodSync(this.#folder, 0o700);
      // Somebody who was killed may have left one.
      rmSync(partial, { force: true });
      writeNew(partial, `${JSON.stringify(record)}\n`);
      renameSync(partial, path);
      syncFolder(this.#folder);
    } catch (error) {
      throw new Fault("JOURNAL", `What is to be undone in node "${record.name}" cannot be kept in "${path}"`, {
        cause: error,
        remedy: "Nothing is changed in a node before that is kept. Make room there, or name another --state-dir.",
      });
    }
  }

  remove(containerId: string): void {
    const path = this.#pathOf(containerId);
    rmSync(path, { force: true });
    rmSync(`${path}.partial`, { force: true });
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
    if (!CONTAINER_ID.test(containerId)) throw new Error(`"${containerId}" is no container's id`);
    return join(this.#folder, `${containerId}${ENDING}`);
  }
}

function writeNew(path: string, text: string): void {
  const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    writeFileSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** A rename is on disk when its folder is. */
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

/** What is undone goes by these: a name of a device becomes a path, an address is taken from a node. */
const RECORD: Readonly<Record<keyof NodeRecord, Check>> = {
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

function recordIn(text: string, containerId: string): NodeRecord {
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) throw new Error("It holds no record");
  if (!RECORD.version(value["version"])) throw new Error("It is of another version");
  const wrong = Object.entries(RECORD).find(([key, check]) => !check(value[key]));
  if (wrong !== undefined) throw new Error(`Its "${wrong[0]}" is not what it should be`);
  if (value["containerId"] !== containerId) throw new Error("It is another container's");
  return value as unknown as NodeRecord;
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
