/**
 * ClusterDns: the address at which the nodes of a cluster have their DNS servers, from the kubelet's settings in the node. It is
 * an address of the cluster, so it is queried from inside the node. A node that has just started has no settings yet: those
 * that were looked for are looked for again until they are there.
 */
import { isIP } from "node:net";

import { LIMITS } from "../../base/limits.ts";
import type { ContainerFact } from "../facts/fact.ts";
import { readUnder, withContainerRoot } from "../namespace/container-root.ts";
import type { EngineHost } from "../namespace/engine-host.ts";

const KUBELET_SETTINGS = "/var/lib/kubelet/config.yaml";
const API_SERVER_MANIFEST = "/etc/kubernetes/manifests/kube-apiserver.yaml";
const SETTINGS_BYTES = 64 * 1024;

type Node = Pick<ContainerFact, "id" | "pid" | "name" | "startedAt">;

interface ClusterDnsParts {
  readonly host: () => EngineHost;
  /** A node has an address now that it did not have. */
  readonly onFound: () => void;
}

export class ClusterDns {
  readonly #parts: ClusterDnsParts;
  /** By container and start; undefined while there is none. */
  readonly #known = new Map<string, { readonly node: Node; readonly address: string | undefined }>();
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: ClusterDnsParts) {
    this.#parts = parts;
  }

  /** Undefined while the node's kubelet has no settings. */
  addressOf(node: Node): string | undefined {
    const known = this.#known.get(node.id);
    if (known !== undefined && known.node.startedAt === node.startedAt) return known.address;
    const address = this.#read(node);
    if (this.#known.size >= LIMITS.clusterNodes) this.#known.delete(this.#known.keys().next().value as string);
    this.#known.set(node.id, { node, address });
    if (address === undefined) this.#lookAgain();
    return address;
  }

  /** A container is gone. */
  forget(id: string): void {
    this.#known.delete(id);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#known.clear();
  }

  #lookAgain(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const waiting = [...this.#known.values()].filter(({ address }) => address === undefined);
      const found = waiting.flatMap(({ node }) => {
        const address = this.#read(node);
        return address === undefined ? [] : [{ node, address }];
      });
      for (const each of found) this.#known.set(each.node.id, each);
      if (found.length < waiting.length) this.#lookAgain();
      if (found.length > 0) this.#parts.onFound();
    }, LIMITS.clusterDnsPollMs).unref();
  }

  #read(node: Node): string | undefined {
    return clusterDnsIn(fileOf(node, this.#parts.host(), KUBELET_SETTINGS));
  }
}

/** The file in the container; empty where it cannot be read. */
function fileOf({ id, pid }: Node, host: EngineHost, path: string): string {
  try {
    return withContainerRoot(pid, id, host, (root) => readUnder(root, path, SETTINGS_BYTES)?.toString() ?? "");
  } catch {
    return "";
  }
}

/** The first address of `clusterDNS`, as kubeadm writes it or in one line. */
export function clusterDnsIn(text: string): string | undefined {
  const [, list, line] = /^clusterDNS:[ \t]*(?:\n((?:[ \t]*- *\S+[ \t]*\n?)+)|\[([^\]\n]*)\])/m.exec(text) ?? [];
  const words = (list ?? line ?? "").split(/[\s,]+/).map((word) => word.replaceAll(/^["']|["']$/g, ""));
  return words.find((word) => isIP(word) !== 0);
}

/** What a node says about its cluster. */
export interface ClusterAddresses {
  readonly dns: string | undefined;
  /** The ranges of Services; only nodes with the API server know them. */
  readonly services: readonly string[];
}

export function clusterAddressesOf(node: Node, host: EngineHost): ClusterAddresses {
  const manifest = fileOf(node, host, API_SERVER_MANIFEST);
  const ranges = /--service-cluster-ip-range=([\da-fA-F.:/,]+)/.exec(manifest)?.[1] ?? "";
  return {
    dns: clusterDnsIn(fileOf(node, host, KUBELET_SETTINGS)),
    services: ranges.split(",").filter((range) => /^[\da-fA-F.:]+\/\d{1,3}$/.test(range)),
  };
}
