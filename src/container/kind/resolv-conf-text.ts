/**
 * The text of a node's resolv.conf with the address under which its pods reach us, made out of the text without it. A pod
 * gets a copy of the node's file, and a loopback address in there is the pod's own: those lines are replaced, everything
 * else stays as somebody wrote it.
 *
 * A text holds one character for each byte of the file (latin1), so that what is not understood survives unchanged.
 */
import { addressBytes, isSameAddress } from "../../base/model/address.ts";

/** Every C library reads the first three and no more; so does the kubelet. */
export const NAMESERVERS_MAX = 3;

/** What to put into a text. */
export interface TextChange {
  /** In the order in which they are to be asked. Without any, the nameservers stay. */
  readonly addresses: readonly string[];
  /** As KIND_DNS_SEARCH has it: unset leaves the file's search list, an empty one removes it, another one replaces it. */
  readonly search: string | undefined;
  /** Servers that are to be replaced as a loopback address is. */
  readonly replaced?: readonly string[];
}

interface Line {
  readonly body: string;
  /** A line's end, or nothing at the end of a file that lacks it. */
  readonly end: string;
}

// A comment may follow the address at once, as glibc has it.
const NAMESERVER = /^[ \t]*(nameserver[ \t]+)([^ \t#;]+)([^]*)$/;
const SEARCH = /^[ \t]*search([ \t]|$)/;

export function rewriteResolvConf(text: string, { addresses, search, replaced: useless = [] }: TextChange): string {
  const lines = linesOf(text);
  const end = lines[0]?.end === "\r\n" ? "\r\n" : "\n";
  const published = addresses.length === 0 ? lines : withServers(lines, { addresses, replaced: useless }, end);
  const changed = search === undefined ? published : withSearch(published, search, end);
  return textOf(changed, end, text === "" || text.endsWith("\n"));
}

/** The addresses that the text names, in their order; what is no address is not among them. */
export function nameserversIn(text: string): readonly string[] {
  return serversOf(linesOf(text));
}

/** Whether a pod that asks this address asks itself. */
export function isLoopback(address: string): boolean {
  const bytes = addressBytes(address);
  return bytes?.length === 4 ? bytes[0] === 127 : isSameAddress(address, "::1");
}

function withServers(
  lines: readonly Line[],
  { addresses, replaced: useless }: Required<Pick<TextChange, "addresses" | "replaced">>,
  end: string,
): readonly Line[] {
  const isReplaced = (server: string): boolean => isLoopback(server) || useless.includes(server);
  const servers = serversOf(lines);
  const others = servers.filter((server) => !isReplaced(server));
  const asked = others.slice(0, NAMESERVERS_MAX);
  const missing = addresses.filter((address) => !asked.some((other) => isSameAddress(other, address)));
  // One of ours takes the place of the loopback address that nobody can use any more; further ones only take free places.
  const ours = missing.slice(0, Math.max(1, NAMESERVERS_MAX - others.length));
  if (servers.length === 0) return [...lines, ...ours.map((address) => serverLine(address, end))];
  let isFirst = true;
  const replaced = lines.flatMap((line) => {
    const server = serverOf(line);
    if (server === undefined || !isReplaced(server)) return [line];
    const instead = isFirst
      ? ours.map((address, index) => serverLine(address, end, index === 0 ? line : undefined))
      : [];
    isFirst = false;
    return instead;
  });
  return firstServers(replaced);
}

/** Nobody reads the servers after these, and what nobody reads should not look as if it were asked. */
function firstServers(lines: readonly Line[]): readonly Line[] {
  let count = 0;
  return lines.filter((line) => serverOf(line) === undefined || ++count <= NAMESERVERS_MAX);
}

/** A line that stands in the place of another one keeps its comment; glibc wants no blank before the word. */
function serverLine(address: string, end: string, place?: Line): Line {
  const [, directive = "nameserver ", , rest = ""] = NAMESERVER.exec(place?.body ?? "") ?? [];
  return { body: `${directive}${address}${rest}`, end };
}

function withSearch(lines: readonly Line[], search: string, end: string): readonly Line[] {
  const domains = search.split(/[ \t\r\n]+/).filter((domain) => domain !== "");
  const others = lines.filter(({ body }) => !SEARCH.test(body));
  return domains.length === 0 ? others : [{ body: `search ${domains.join(" ")}`, end }, ...others];
}

function serversOf(lines: readonly Line[]): readonly string[] {
  return lines.map(serverOf).filter((server) => server !== undefined);
}

function serverOf({ body }: Line): string | undefined {
  const [, , address] = NAMESERVER.exec(body) ?? [];
  return address === undefined || addressBytes(address) === undefined ? undefined : address;
}

function linesOf(text: string): readonly Line[] {
  return (text.match(/[^\n]*\n|[^\n]+$/g) ?? []).map((line) => {
    const [end = ""] = /\r?\n$/.exec(line) ?? [];
    return { body: line.slice(0, line.length - end.length), end };
  });
}

/** A file that lacked its last line's end lacks it still, whichever line is the last one now. */
function textOf(lines: readonly Line[], end: string, isEnded: boolean): string {
  return lines
    .map((line, index) => line.body + (index === lines.length - 1 && !isEnded ? "" : line.end || end))
    .join("");
}
