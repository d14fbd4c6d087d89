/**
 * ContainerFilesReader: reads the files that the engine made for a container, for what its API does not tell. A
 * container can write them, and can make opening them wait.
 */
import { type EngineHost, tryReadContainerFile } from "../namespace/engine-host.ts";
import type { HostEntry } from "../facts/fact.ts";
import type { ContainerJson } from "./engine-json.ts";
import { extraHostsOf } from "./extra-hosts.ts";
import type { HostUpstreams } from "./host-upstreams.ts";
import type { ContainerFiles } from "./translate.ts";
import { UnreadFiles } from "./unread-files.ts";

export interface ContainerFilesParts {
  readonly host: () => EngineHost;
  readonly upstreams: Pick<HostUpstreams, "nameserversOf">;
  /** Inspect these containers again: a file of theirs could not be read before. */
  readonly reinspect: (containerIds: readonly string[]) => void;
}

export class ContainerFilesReader {
  readonly #parts: ContainerFilesParts;
  readonly #unread: UnreadFiles;

  constructor(parts: ContainerFilesParts) {
    this.#parts = parts;
    this.#unread = new UnreadFiles(parts.reinspect);
  }

  read(json: ContainerJson): ContainerFiles {
    return { nameservers: this.#parts.upstreams.nameserversOf(json), extraHosts: this.#extraHostsOf(json) };
  }

  close(): void {
    this.#unread.close();
  }

  #extraHostsOf({ Id: id, HostsPath: path = "", HostConfig: config }: ContainerJson): readonly HostEntry[] {
    const found = extraHostsOf(config?.ExtraHosts ?? [], () => tryReadContainerFile(this.#parts.host(), path, id));
    if (found !== "busy") return found;
    this.#unread.add(id);
    return [];
  }
}

/** What the engine's API tells without these files: neither servers nor the addresses of host-gateway. */
export function apiFiles({ HostConfig: config }: ContainerJson): ContainerFiles {
  const extraHosts = extraHostsOf(config?.ExtraHosts ?? [], () => ({ kind: "absent" }));
  return { nameservers: { kind: "unknown" }, extraHosts: extraHosts === "busy" ? [] : extraHosts };
}
