/**
 * ContainerFilesReader: reads the files that the engine made for a container, for what its API does not tell. A
 * container can write them, and can make opening them wait.
 */
import { withoutComment } from "../../base/lib/text.ts";
import { addressBytes } from "../../base/model/address.ts";
import { type EngineHost, tryReadContainerFile, type EngineFile } from "../namespace/engine-host.ts";
import type { HostEntry } from "../facts/fact.ts";
import type { ContainerJson } from "./engine-json.ts";
import { type HostUpstreams, UnreadFiles } from "./host-upstreams.ts";
import type { ContainerFiles } from "./translate.ts";

const HOST_GATEWAY = "host-gateway";

interface HostLine {
  readonly address: string;
  readonly names: readonly string[];
}

interface ContainerFilesParts {
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

/**
 * What `--add-host` gave a container. The engine's API has it as it was written, where `host-gateway` stands
 * for addresses that only dockerd knows; their text is in the hosts file that it made for the container. The container
 * can write that file, so only the addresses of names with `host-gateway` are taken from it, one of each family, as
 * dockerd writes them. What a container writes there, it alone is told.
 *
 * `readHosts` is called only if an entry needs the file; "busy" if it did and could not be read now.
 */
export function extraHostsOf(texts: readonly string[], readHosts: () => EngineFile): readonly HostEntry[] | "busy" {
  const entries = texts.flatMap(entryOf);
  const isLiteral = ({ address }: HostEntry): boolean => address !== HOST_GATEWAY;
  const literal = entries.filter((entry) => isLiteral(entry) && addressBytes(entry.address) !== undefined);
  if (entries.every(isLiteral)) return literal;
  const file = readHosts();
  if (file.kind === "busy") return "busy";
  const lines = file.kind === "read" ? hostLines(file.text) : [];
  return entries.flatMap((entry): readonly HostEntry[] => {
    if (isLiteral(entry)) return literal.includes(entry) ? [entry] : [];
    const { name } = entry;
    const others = literal.filter((each) => each.name === name).map(({ address }) => address);
    return gatewaysOf(name, lines, others).map((address) => ({ name, address }));
  });
}

/** `NAME:ADDRESS`, as the API has it, or with "="; an IPv6 address may be in brackets. */
function entryOf(text: string): HostEntry[] {
  const [, name, value] = /^([^:=]+)[:=](.+)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) return [];
  return [{ name, address: value.replace(/^\[(.*)\]$/, "$1") }];
}

function hostLines(text: string): HostLine[] {
  return text.split("\n").flatMap((line): HostLine[] => {
    const [address = "", ...names] = withoutComment(line).trim().split(/\s+/);
    return names.length > 0 && addressBytes(address) !== undefined ? [{ address, names }] : [];
  });
}

/** The first address of each family, without those that other entries gave the name. */
function gatewaysOf(name: string, lines: readonly HostLine[], others: readonly string[]): string[] {
  const all = lines.filter((line) => line.names.includes(name) && !others.includes(line.address));
  return [false, true].flatMap((isV6) => all.find(({ address }) => address.includes(":") === isV6)?.address ?? []);
}
