/**
 * NodeResolvConf: the resolv.conf of a node: its nameservers, what KIND's entrypoint changed in it, and our address, advertised
 * in it for as long as the node is served.
 */
import { LIMITS } from "../../base/limits.ts";
import { isLoopback } from "../../base/model/address.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import type { ResolvConfRecord, NodeRecord } from "./journal.ts";
import {
  ResolvConfWriter,
  type AdvertiseResult,
  type Reaction,
  type RestoreResult,
  restoreFile,
} from "./resolv-conf-writer.ts";
import { type OpenFile, ResolvConfFile } from "./resolv-conf-file.ts";
import { NAMESERVERS_MAX, type SearchList, nameserversIn, rewriteResolvConf } from "./resolv-conf-text.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { closeQuietly, openInRoot } from "../../kernel/libc.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import type { EngineHost } from "../namespace/engine-host.ts";
import { proveNamespace } from "../namespace/proof.ts";
import { findDockerResolver } from "./docker-resolver.ts";
import { removeLoAddresses } from "./lo-addresses.ts";
import { restoreRouteLocalnet } from "./route-localnet.ts";

export interface NodeFiles {
  /** The path of the written file, for the journal. */
  readonly path: string;
  /** The file to write, which Docker mounts into the container. */
  readonly openWritten: OpenFile;
  /** The file that the container itself has at /etc/resolv.conf. */
  readonly openRead: OpenFile;
  /** The copy that KIND's entrypoint makes of the file before it edits it. Throws if there is none. */
  readonly openOriginal: OpenFile;
  /** Whether the container reads the file that we write; a user may have mounted another one there. */
  readonly isContainerFile: () => boolean;
}

export interface AdvertiseOptions {
  readonly addresses: readonly string[];
  /** `Wanted` says what it is. */
  readonly ours?: readonly string[] | undefined;
  readonly search: string | undefined;
  readonly list?: SearchList | undefined;
  /** Whether to leave out the option ndots. */
  readonly dropsNdots?: boolean | undefined;
  readonly record: ResolvConfRecord | undefined;
  /** Called before the file is touched. */
  readonly save: (record: ResolvConfRecord) => void;
  readonly onRewritten: (reaction: Exclude<Reaction, "ours">) => void;
}

const NOT_MOUNTED = "another file is mounted at /etc/resolv.conf";

export class NodeResolvConf {
  readonly #files: NodeFiles;
  #writer: ResolvConfWriter | undefined;
  #known: ResolvConfRecord | undefined;
  #state = "unchanged";
  /** The container did not read the file that we write at the last check, and another check is due. */
  #isRechecked = false;
  #recheckTimer: NodeJS.Timeout | undefined;

  constructor(files: NodeFiles) {
    this.#files = files;
  }

  /** A phrase for people. */
  get state(): string {
    return this.#state;
  }

  /** The text that a new pod would get; undefined if it cannot be read. */
  text(): string | undefined {
    return new ResolvConfFile(this.#files.openRead).read();
  }

  /** The servers that a new pod could query: of any number in the file the first ones, and none that dns11 replaces. */
  nameservers(): string[] {
    const servers = this.#servers(this.#files.openRead).filter((address) => !isLoopback(address));
    return servers.slice(0, NAMESERVERS_MAX);
  }

  /** The addresses with which KIND's entrypoint, or one like it, replaced 127.0.0.11. */
  nameserversFromEntrypoint(): string[] {
    const original = this.#servers(this.#files.openOriginal);
    return original.some(isLoopback) ? this.nameservers().filter((address) => !original.includes(address)) : [];
  }

  /** Writes the addresses into the file. Returns the new state if it changed. */
  advertise({
    addresses,
    ours,
    search,
    list,
    dropsNdots = false,
    record: known,
    save,
    onRewritten,
  }: AdvertiseOptions): string | undefined {
    const before = this.#state;
    const record = known && this.#afterEntrypoint(known, search);
    if (record !== undefined && record !== known) save(record);
    this.#known = record;
    const isContainerFile = this.#files.isContainerFile();
    if (!isContainerFile && !this.#isRechecked) {
      // The files of a container that is just starting are not visible yet.
      this.#isRechecked = true;
      this.#recheckTimer = setTimeout(() => onRewritten("rewrite"), LIMITS.hostFileMissingMs).unref();
    } else if (!isContainerFile) {
      this.#state = `not written: ${NOT_MOUNTED}`;
    } else {
      this.#isRechecked = false;
      this.#writer ??= new ResolvConfWriter({
        file: new ResolvConfFile(this.#files.openWritten),
        save: (versions) => {
          const texts = toBase64(versions);
          // Another original has nothing of what the entrypoint made of the one before.
          const { afterwards } = this.#known?.original === texts.original ? this.#known : {};
          save({ path: this.#files.path, ...texts, ...(afterwards !== undefined && { afterwards }) });
        },
        onRewritten,
      });
      this.#state = stateAfter(this.#writer.advertise({ addresses, ours, search, list, dropsNdots, record }));
    }
    return this.#state === before ? undefined : this.#state;
  }

  /** Restores the file if it still contains what we wrote. `reachableAt`: the addresses of Docker's resolver. */
  restore(record: ResolvConfRecord, search: string | undefined, reachableAt: readonly string[]): RestoreResult {
    this.close();
    this.#state = "unchanged";
    return restoreRecord(this.#files.openWritten, this.#afterEntrypoint(record, search), reachableAt);
  }

  close(): void {
    clearTimeout(this.#recheckTimer);
    this.#isRechecked = false;
    this.#writer?.close();
    this.#writer = undefined;
  }

  /**
   * KIND's entrypoint adds a search list to the file, which Docker's text lacks. It keeps a copy of the text that it found,
   * Docker's or ours.
   */
  #afterEntrypoint(record: ResolvConfRecord, search: string | undefined): ResolvConfRecord {
    if (record.afterwards !== undefined || search === undefined) return record;
    const copied = new ResolvConfFile(this.#files.openOriginal).read()?.trimEnd();
    const original = latin1Of(record.original);
    if (copied !== original.trimEnd() && copied !== latin1Of(record.written).trimEnd()) return record;
    const text = rewriteResolvConf(original, { addresses: [], search: Buffer.from(search).toString("latin1") });
    return { ...record, afterwards: Buffer.from(text, "latin1").toString("base64") };
  }

  #servers(open: OpenFile): readonly string[] {
    return nameserversIn(new ResolvConfFile(open).read() ?? "");
  }
}

/** If Docker's resolver answers at another address than 127.0.0.11, the restored file names that one. */
export function restoreRecord(
  open: OpenFile,
  { original, written, afterwards }: ResolvConfRecord,
  reachableAt: readonly string[],
): RestoreResult {
  const versions = { original: Buffer.from(original, "base64"), written: Buffer.from(written, "base64") };
  const text = withReachable(latin1Of(afterwards ?? original), reachableAt);
  return restoreFile(new ResolvConfFile(open), versions, Buffer.from(text, "latin1"));
}

function withReachable(text: string, reachableAt: readonly string[]): string {
  const [first] = reachableAt;
  const isUnchanged = reachableAt.includes(DOCKER_RESOLVER) || !nameserversIn(text).includes(DOCKER_RESOLVER);
  return first === undefined || isUnchanged ? text : rewriteResolvConf(text, { addresses: [first], search: undefined });
}

function latin1Of(base64: string): string {
  return Buffer.from(base64, "base64").toString("latin1");
}

function stateAfter(result: AdvertiseResult): string {
  switch (result.outcome) {
    case "advertised":
      return `${result.addresses.join(", ")}, written by dns11`;
    case "accepted":
      return `${result.addresses.join(", ")}, written by another program`;
    case "busy":
      return "being written by another program";
    case "read-only":
      return `not written: ${result.reason}`;
  }
}

function toBase64({ original, written }: { original: Buffer; written: Buffer }): Omit<ResolvConfRecord, "path"> {
  return { original: original.toString("base64"), written: written.toString("base64") };
}

/**
 * Node restore: undoes the changes in a node's journal record without the NodeMode that made them: after a SIGKILL, or when the
 * container is no longer a node.
 */
interface RestoreTools {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly host: EngineHost;
}

interface RestoreOutcome {
  /** The actions removed and the failures, a sentence each. */
  readonly did: readonly string[];
  /** If false, the record is still needed. */
  readonly isComplete: boolean;
}

/** The outcome for a container that has restarted since, which reset everything. */
export const NOTHING_TO_RESTORE: RestoreOutcome = { did: [], isComplete: true };

/** Tries every step even if others fail. */
export async function restoreNode(record: NodeRecord, { runner, memory, host }: RestoreTools): Promise<RestoreOutcome> {
  let reachableAt: readonly string[] = [];
  const inside = await attempt(async () => {
    const { fd } = proveNamespace(record, host, runner.homeId);
    try {
      const netns = runner.namespaceOf(fd, memory);
      ({ reachableAt } = await findDockerResolver(netns));
      return netns.within(() => restoreNamespace(record, memory));
    } finally {
      closeQuietly(fd);
    }
  });
  const { resolvConf: { path = "" } = {} } = record;
  const file = await attempt(() =>
    restoreResolvConf(record, (flags) => openInRoot(host.root, path, flags), reachableAt),
  );
  return { did: [...file.did, ...inside.did], isComplete: file.isComplete && inside.isComplete };
}

/** Restores lo and route_localnet. Call inside the namespace. */
export function restoreNamespace(record: NodeRecord, memory: NetlinkMemory): string[] {
  const route = new RouteSocket(memory);
  try {
    const did = [...restoreRouteLocalnet(record, () => route.links())];
    const removed = removeLoAddresses(route, record.addresses);
    return [...(removed.length === 0 ? [] : [`removed ${removed.join(", ")} from lo`]), ...did];
  } finally {
    route.close();
  }
}

/** `reachableAt`: the addresses of Docker's resolver. */
export function restoreResolvConf(
  { resolvConf }: NodeRecord,
  open: OpenFile,
  reachableAt: readonly string[],
): string[] {
  if (resolvConf === undefined) return [];
  switch (restoreRecord(open, resolvConf, reachableAt)) {
    case "restored":
      return ["restored resolv.conf"];
    case "changed":
      return ["left resolv.conf unchanged: another program has edited it"];
    case "gone":
      return ["found no resolv.conf to restore"];
  }
}

async function attempt(act: () => Promise<string[]> | string[]): Promise<RestoreOutcome> {
  try {
    return { did: await act(), isComplete: true };
  } catch (error) {
    return { did: [`failed: ${reasonOf(error)}`], isComplete: false };
  }
}
