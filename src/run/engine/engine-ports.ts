/**
 * EnginePorts: what the control socket can read and do about an engine's containers.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { RepairReport } from "../../api/status.ts";
import { LIMITS } from "../../base/limits.ts";
import type { Reconciler } from "../../container/attach/reconciler.ts";
import { openHostNetwork, tryReadContainerFile, type EngineHost } from "../../container/namespace/engine-host.ts";
import { libcOf } from "../../container/namespace/container-libc.ts";
import { listeningPorts } from "../../container/namespace/listeners.ts";
import { withOwnFiles } from "../../container/namespace/own-files.ts";
import { proveNamespace } from "../../container/namespace/proof.ts";
import type { Directory } from "../../container/registry/directory.ts";
import type { Roster } from "../../container/roster.ts";
import { listedServers } from "../../container/watch/host-file.ts";
import { USUAL_ORDER, lookupOrder } from "../../container/watch/nsswitch.ts";
import { parseResolvConf } from "../../container/watch/resolv-conf.ts";
import {
  type ComposeFiles,
  type ContainerAccess,
  type Containers,
  NO_FEATURE_FIELDS,
  type Repairs,
} from "../../control/situation/ports.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { DNS_PORT } from "../../base/model/server-text.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import type { ComposeProjectText } from "../../base/model/compose.ts";
import { fingerprintOfFiles } from "../../config/file/files.ts";
import { readComposeInWorker } from "../../config/file/worker.ts";
import type { ComposeService } from "../../container/facts/compose.ts";
import type { Outsiders, OwnNamespace } from "../../features/contract.ts";
import type { ContainerSideParts } from "../container-side.ts";
import type { Platform } from "../platform.ts";
import { openNamespace } from "../open-namespace.ts";
import type { Quarantines } from "../quarantine/quarantines.ts";
import type { EngineAccess } from "./engine-link.ts";
import type { EngineNetworks } from "./engine-networks.ts";
import type { StoppedContainers } from "./stopped-containers.ts";
import type { Server } from "../../base/model/view.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { dialIn } from "../../container/namespace/dial.ts";
import type { NamespaceRunner } from "../../container/namespace/namespace-runner.ts";

/** Whether a file has changed is looked at so often, if a cause needs it. */
const LOOK_EVERY_MS = 200;

/** What a file includes may have changed although it has not. */
const READ_EVERY_MS = 30_000;

/** Whoever waits for an explanation waits so long, and a file may take longer on a busy machine. */
const WAIT_MS = 3_000;
const READING_MS = 15_000;
const PROJECTS_MAX = 32;
const READ_AT_ONCE = 4;
const FILES_MAX = 8;
const PATH_LENGTH_MAX = 1_024;

interface Entry {
  readonly text: ComposeProjectText | undefined;
  readonly fingerprint: string;
  readonly readMs: number;
  lookedMs: number;
}

interface EnginePortsParts {
  /** The current one. */
  readonly directory: Directory;
  readonly outsiders: () => readonly Outsiders[];
  readonly ownNamespaces: readonly OwnNamespace[];
  /** Undefined for the ID of a container. */
  readonly namespaceOf: (id: string) => OwnNamespace | undefined;
  readonly reconciler: Reconciler;
  readonly roster: Roster;
  readonly stopped: StoppedContainers;
  readonly networks: EngineNetworks;
}

const POLL_MS = 10;
const NSSWITCH = "/etc/nsswitch.conf";
const NSSWITCH_BYTES_MAX = 64 * 1024;

export function containersOf(
  parts: EnginePortsParts,
  { querySide, ofFeatures = NO_FEATURE_FIELDS }: Pick<ContainerSideParts, "querySide" | "ofFeatures">,
): Containers {
  const { networks, reconciler, roster, stopped } = parts;
  const ofOutsider = <T>(read: (each: Outsiders) => T | undefined): T | undefined => {
    for (const each of parts.outsiders()) {
      const found = read(each);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return {
    get facts() {
      const { containers } = parts.directory;
      const others = [
        ...parts.ownNamespaces.map(({ fact }) => fact),
        ...parts.outsiders().flatMap(({ facts }) => facts),
      ];
      return others.length === 0
        ? containers
        : new Map([...containers, ...others.map((each) => [each.id, each] as const)]);
    },
    decisionOf: (id) => {
      const { decision } = parts.namespaceOf(id) ?? {};
      return decision ?? ofOutsider((each) => each.decisionOf(id)) ?? roster.decisionOf(id);
    },
    attachmentOf: (id) => reconciler.attachmentOf(id),
    clients: querySide.clients,
    viewOf: (fact) =>
      parts.namespaceOf(fact.id)?.view ?? ofOutsider((each) => each.viewOf?.(fact.id)) ?? roster.viewOf(fact),
    defaultBridge: () => roster.defaultBridge,
    formerAddresses: () => parts.directory.former.list(),
    formerNames: () => parts.directory.formerNames.list(),
    stopped: async () => await stopped.list(),
    networks: async () => await networks.list(),
    get elsewhere() {
      return parts.directory.names;
    },
    ofFeatures,
  };
}

export function repairsOf({ reconciler, roster }: EnginePortsParts, quarantines: Quarantines): Repairs {
  return {
    repair: async (id) => {
      if (quarantines.release(id)) return await attachAfterRelease({ reconciler, roster }, id);
      return (await reconciler.repair(id)) ?? "not-served";
    },
  };
}

/** The container is wanted again; the worker attaches it in its turn. */
async function attachAfterRelease(
  { reconciler, roster }: Pick<EnginePortsParts, "reconciler" | "roster">,
  id: string,
): Promise<RepairReport["outcome"]> {
  roster.refresh();
  for (const endMs = performance.now() + LIMITS.repairMs; performance.now() < endMs; await sleep(POLL_MS)) {
    const outcome = await reconciler.repair(id);
    if (outcome !== undefined) return outcome === "failed" ? "failed" : "released";
  }
  return "failed";
}

interface InsideParts extends Pick<ContainerAccess, "hostServers"> {
  readonly namespaceOf?: EnginePortsParts["namespaceOf"];
  readonly outsiders?: EnginePortsParts["outsiders"];
}

export function insideOf(
  { host }: Pick<EngineAccess, "host">,
  { runner }: Pick<Platform, "runner">,
  {
    hostServers = () => listedServers(host(), undefined),
    namespaceOf = () => undefined,
    outsiders = () => [],
  }: InsideParts = {},
): ContainerAccess {
  return {
    hostServers,
    composeFiles: new ComposeProjects(() => `/proc/self/fd/${host().root}`),
    hostsOf: (fact) => {
      const file = tryReadContainerFile(host(), fact.hostsPath ?? "", fact.id);
      return file.kind === "read" ? file.text : undefined;
    },
    lookupOrderOf: ({ id, pid }) => {
      try {
        return withOwnFiles(pid, id, host(), (read) => {
          const text = read(NSSWITCH, NSSWITCH_BYTES_MAX)?.toString("utf8");
          const order = lookupOrder(text, undefined);
          // The library decides where the file is missing, or says something else than usual.
          return text !== undefined && order === USUAL_ORDER ? order : lookupOrder(text, libcOf(read));
        });
      } catch {
        // Of a file that cannot be read nothing is said.
        return USUAL_ORDER;
      }
    },
    listeningIn: ({ pid }) => listeningPorts(pid),
    hasRoute: (fact, address) => {
      try {
        const fd =
          fact === undefined
            ? openHostNetwork(host())
            : proveNamespace({ containerId: fact.id, ...fact }, host(), runner.homeId).fd;
        const namespace = openNamespace(runner, fd);
        try {
          closeQuietly(namespace.dial({ from: "container", address, port: DNS_PORT }, "udp"));
          return true;
        } finally {
          namespace.close();
        }
      } catch (error) {
        return codeOf(error) !== "ENETUNREACH" && codeOf(error) !== "EHOSTUNREACH";
      }
    },
    open: (fact) => {
      const namespace = namespaceOf(fact.id);
      if (namespace !== undefined) return openNamespace(runner, namespace.open().fd);
      for (const each of outsiders()) {
        const fault = each.unreachable?.(fact.id);
        if (fault !== undefined) throw fault;
      }
      try {
        return openNamespace(runner, proveNamespace({ containerId: fact.id, ...fact }, host(), runner.homeId).fd);
      } catch (error) {
        if (codeOf(error) !== "NAMESPACE_IS_HOST") throw error;
        throw new Fault(
          "NAMESPACE_IS_HOST",
          `"${fact.name}" uses the host's network: query from the host itself, for example with dig`,
        );
      }
    },
    resolvConfOf: (fact) => {
      if (outsiders().some((each) => each.decisionOf(fact.id) !== undefined)) return undefined;
      const namespace = namespaceOf(fact.id);
      if (namespace !== undefined) return namespace.resolvConf();
      const { id, resolvConfPath: path } = fact;
      const file = tryReadContainerFile(host(), path ?? "", id);
      return file.kind === "read" ? parseResolvConf(file.text) : undefined;
    },
  };
}

/**
 * What the files of Compose projects say, for advice about a change of them. They are read in a thread of their own
 * when a cause needs them. A file may be on a server that does not answer: nobody waits for long, and not twice.
 */
class ComposeProjects implements ComposeFiles {
  readonly #root: () => string;
  readonly #entries = new Map<string, Entry>();
  readonly #wanted = new Map<string, readonly string[]>();
  #reading: Promise<true> | undefined;
  #isSlow = false;

  /** `root` is the folder below which the engine's host has its files. */
  constructor(root: () => string) {
    this.#root = root;
  }

  projectOf({ files }: ComposeService): ComposeProjectText | undefined {
    if (files.length === 0 || files.length > FILES_MAX || !files.every(isPath)) return undefined;
    const key = files.join("\n");
    const entry = this.#entries.get(key);
    const isDue = entry === undefined || performance.now() - entry.lookedMs > LOOK_EVERY_MS;
    if (isDue && this.#wanted.size < PROJECTS_MAX) this.#wanted.set(key, files);
    return entry?.text;
  }

  async learn(): Promise<boolean> {
    if (this.#wanted.size === 0 || this.#isSlow) return false;
    this.#reading ??= this.#read();
    const isRead = await Promise.race([this.#reading, sleep(WAIT_MS, false, { ref: false })]);
    // Until that ends nobody waits again.
    if (!isRead) this.#isSlow = this.#reading !== undefined;
    return isRead;
  }

  async #read(): Promise<true> {
    const wanted = [...this.#wanted].slice(0, READ_AT_ONCE);
    this.#wanted.clear();
    for (const [key, files] of wanted) {
      const root = this.#root();
      const fingerprint = await fingerprintOfFiles(files.map((file) => `${root}${file}`));
      const nowMs = performance.now();
      const entry = this.#entries.get(key);
      if (entry?.fingerprint === fingerprint && nowMs - entry.readMs < READ_EVERY_MS) {
        entry.lookedMs = nowMs;
        continue;
      }
      const text = await readComposeInWorker(files, root, READING_MS).catch(() => undefined);
      this.#entries.delete(key);
      this.#entries.set(key, { text, fingerprint, readMs: nowMs, lookedMs: nowMs });
      for (const first of this.#entries.keys()) if (this.#entries.size > PROJECTS_MAX) this.#entries.delete(first);
    }
    this.#reading = undefined;
    this.#isSlow = false;
    return true;
  }
}

function isPath(file: string): boolean {
  return file.startsWith("/") && file.length <= PATH_LENGTH_MAX && !file.includes("\0");
}

interface NodeDialParts {
  readonly containers: () => Iterable<ContainerFact>;
  readonly host: () => EngineHost;
  readonly runner: NamespaceRunner;
}

/**
 * Sockets in the network namespace of a cluster's node, whose DNS servers have addresses of the cluster.
 * Opens a socket where the server was found, if it is still that start of the node. Throws a Fault.
 */
export function nodeDial({ containers, host, runner }: NodeDialParts) {
  return ({ container, ...server }: Server, type: "udp" | "tcp"): number => {
    const node = [...containers()].find(({ name }) => name === container?.name);
    if (node === undefined || node.startedAt !== container?.startedAt) throw new Fault("ENDED", "The node has ended");
    const claim = { containerId: node.id, sandboxKey: node.sandboxKey, pid: node.pid };
    const { fd } = proveNamespace(claim, host(), runner.homeId);
    try {
      return dialIn(runner, fd, server, type, true);
    } finally {
      closeQuietly(fd);
    }
  };
}
