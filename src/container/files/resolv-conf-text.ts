/**
 * Resolv.conf text: rewrites the text of a node's resolv.conf so that its pods query our address. A pod gets a copy of the
 * node's file, and a loopback address in it would be the pod itself. Those lines are replaced; everything else stays.
 *
 * A text has one character per byte of the file (latin1), so that unknown content survives unchanged.
 */
import { addressBytes, isLoopback, isSameAddress } from "../../base/model/address.ts";

import { DOCKER_RESOLVER } from "../capture/capture.ts";

/** C libraries and the kubelet read only the first three. */
export const NAMESERVERS_MAX = 3;

/** The change to make to a text. */
export interface TextChange {
  /** Nameservers in order of preference. If empty, the nameservers stay. */
  readonly addresses: readonly string[];
  /** As KIND_DNS_SEARCH: undefined keeps the file's search list, empty removes it, anything else replaces it. */
  readonly search: string | undefined;
  /** Nameservers to replace as if they were loopback addresses. */
  readonly replaced?: readonly string[];
  readonly list?: SearchList | undefined;
  /** Whether to leave out the option ndots. */
  readonly dropsNdots?: boolean;
}

/** Domains to put before those of the file, and the `ndots` in place of Docker's. */
export interface SearchList {
  readonly domains: readonly string[];
  readonly ndots: number;
}

/** What glibc before 2.26 reads of a search list: six domains, in 256 bytes with a final zero. It cuts the rest off. */
export const SEARCH_MAX = { domains: 6, chars: 255 };

interface Line {
  readonly body: string;
  /** The line ending; empty for a last line without one. */
  readonly end: string;
}

// As in glibc, a comment may follow the address without a blank.
const NAMESERVER = /^[ \t]*(nameserver[ \t]+)([^ \t#;]+)([^]*)$/;
const SEARCH = /^[ \t]*search([ \t]|$)/;
const DOMAIN = /^[ \t]*domain([ \t]|$)/;
const OPTIONS = /^[ \t]*options([ \t]|$)/;
const NDOTS = /^ndots(?::\S*)?$/;
const BLANKS = /[ \t\r\n]+/;
/** Docker writes it unless somebody has chosen another number. */
const NDOTS_OF_DOCKER = "ndots:0";

export function rewriteResolvConf(
  text: string,
  { addresses, search, list, replaced = [], dropsNdots = false }: TextChange,
): string {
  const lines = linesOf(text);
  const end = lines[0]?.end === "\r\n" ? "\r\n" : "\n";
  const withOurs = addresses.length === 0 ? lines : withServers(lines, { addresses, replaced }, end);
  const searched = search === undefined ? withOurs : withSearch(withOurs, search, end);
  const kept = dropsNdots ? searched.flatMap(withoutNdots) : searched;
  const changed = list === undefined ? kept : withList(kept, list, end);
  return textOf(changed, end, text === "" || text.endsWith("\n"));
}

/**
 * Whether the text can be what Docker writes where its resolver is: that one nameserver, and one line each, at most, for search
 * and options. The checksum that Docker keeps beside the file is of an earlier text.
 */
export function isAsDockerWrote(text: string): boolean {
  const lines = linesOf(text);
  const countOf = (kind: RegExp): number => lines.filter(({ body }) => kind.test(body)).length;
  const servers = serversOf(lines);
  return (
    servers.length === 1 &&
    servers[0] === DOCKER_RESOLVER &&
    countOf(SEARCH) <= 1 &&
    countOf(OPTIONS) <= 1 &&
    countOf(DOMAIN) === 0
  );
}

/** The nameservers of the text in order, without invalid addresses. */
export function nameserversIn(text: string): readonly string[] {
  return serversOf(linesOf(text));
}

function withServers(
  lines: readonly Line[],
  { addresses, replaced }: Required<Pick<TextChange, "addresses" | "replaced">>,
  end: string,
): readonly Line[] {
  const isReplaced = (server: string): boolean => isLoopback(server) || replaced.includes(server);
  const servers = serversOf(lines);
  const others = servers.filter((server) => !isReplaced(server));
  const effective = others.slice(0, NAMESERVERS_MAX);
  const missing = addresses.filter((address) => !effective.some((other) => isSameAddress(other, address)));
  // One of ours replaces the loopback address, which pods cannot use; further ones only fill free places.
  const ours = missing.slice(0, Math.max(1, NAMESERVERS_MAX - others.length));
  if (servers.length === 0) return [...lines, ...ours.map((address) => serverLine(address, end))];
  let isFirst = true;
  const result = lines.flatMap((line) => {
    const server = serverOf(line);
    if (server === undefined || !isReplaced(server)) return [line];
    const replacement = isFirst
      ? ours.map((address, index) => serverLine(address, end, index === 0 ? line : undefined))
      : [];
    isFirst = false;
    return replacement;
  });
  return firstServers(result);
}

/** Drops the nameservers that no C library reads, so that the file does not suggest that they are used. */
function firstServers(lines: readonly Line[]): readonly Line[] {
  let count = 0;
  return lines.filter((line) => serverOf(line) === undefined || ++count <= NAMESERVERS_MAX);
}

/** Keeps the comment of the replaced line. glibc allows no blank before the keyword. */
function serverLine(address: string, end: string, place?: Line): Line {
  const [, directive = "nameserver ", , rest = ""] = NAMESERVER.exec(place?.body ?? "") ?? [];
  return { body: `${directive}${address}${rest}`, end };
}

function withSearch(lines: readonly Line[], search: string, end: string): readonly Line[] {
  const domains = wordsOf(search);
  const others = lines.filter(({ body }) => !SEARCH.test(body));
  return domains.length === 0 ? others : [{ body: `search ${domains.join(" ")}`, end }, ...others];
}

/** C libraries use the last line of each kind. */
function withList(lines: readonly Line[], { domains, ndots }: SearchList, end: string): readonly Line[] {
  const before = lines.findLast(({ body }) => SEARCH.test(body))?.body ?? "";
  const search = `search ${withinLimits([...domains, ...wordsOf(before).slice(1)]).join(" ")}`;
  const options = lines.findLast(({ body }) => OPTIONS.test(body))?.body ?? "options";
  const words = wordsOf(options);
  const isChosen = words.some((word) => word.startsWith("ndots:") && word !== NDOTS_OF_DOCKER);
  const others = words.filter((word) => word !== NDOTS_OF_DOCKER);
  const withNdots = isChosen ? options : [...others, `ndots:${ndots}`].join(" ");
  return withLine(withLine(lines, SEARCH, { body: search, end }), OPTIONS, { body: withNdots, end });
}

/** Each domain once, without the root, which means that there is no search list. */
function withinLimits(domains: readonly string[]): readonly string[] {
  const unique = new Map<string, string>();
  for (const domain of domains) {
    const key = domain.replace(/\.$/, "").toLowerCase();
    if (domain !== "." && !unique.has(key)) unique.set(key, domain);
    if (unique.size === SEARCH_MAX.domains) break;
  }
  const fitting = [...unique.values()];
  while (fitting.join(" ").length > SEARCH_MAX.chars) fitting.pop();
  return fitting;
}

/** In place of the last line of its kind, or below the nameservers. */
function withLine(lines: readonly Line[], kind: RegExp, line: Line): readonly Line[] {
  const index = lines.findLastIndex(({ body }) => kind.test(body));
  if (index >= 0) return lines.with(index, { ...line, end: lines[index]?.end ?? line.end });
  const place = lines.findLastIndex((each) => serverOf(each) !== undefined || SEARCH.test(each.body));
  return lines.toSpliced(place + 1, 0, line);
}

function wordsOf(text: string): readonly string[] {
  return text.split(BLANKS).filter((word) => word !== "");
}

/** Without the line, if it has no other option. */
function withoutNdots(line: Line): readonly Line[] {
  if (!OPTIONS.test(line.body)) return [line];
  // Each word after the blanks before it, so that what else is there stays as it is.
  const [first = "", ...others] = line.body.split(/([ \t]+)/);
  let body = first;
  for (let at = 0; at < others.length; at += 2) {
    const [blanks = "", word = ""] = others.slice(at, at + 2);
    if (!NDOTS.test(word)) body += blanks + word;
  }
  return /^options[ \t]*$/.test(body) ? [] : [{ ...line, body }];
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

/** Keeps a missing line ending at the end of the file missing. */
function textOf(lines: readonly Line[], end: string, isEnded: boolean): string {
  return lines
    .map((line, index) => line.body + (index === lines.length - 1 && !isEnded ? "" : line.end || end))
    .join("");
}
