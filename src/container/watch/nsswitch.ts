/**
 * Nsswitch: whether the C library of a container reads /etc/hosts and queries a server for a name, and in which order, by its
 * /etc/nsswitch.conf. Whoever controls the container writes that file.
 */
import { withoutComment } from "../../base/lib/text.ts";

export interface LookupOrder {
  /** When programs read /etc/hosts. */
  readonly file: "first" | "after failure" | "never";
  readonly queries: boolean;
  /** What says so, as a part of a sentence; empty for the usual order. */
  readonly origin: string;
}

/** The C library as far as it matters: musl reads no nsswitch.conf. */
interface LibcVersion {
  readonly kind: "musl" | "glibc";
  readonly version: string | undefined;
}

export const USUAL_ORDER: LookupOrder = { file: "first", queries: true, origin: "" };

const PATH = "/etc/nsswitch.conf";
/** Of a line; no machine has more to say. */
const LINE_LENGTH = 1024;
const WORDS_MAX = 32;
const SHOWN_LENGTH = 80;
/** The first glibc that reads /etc/hosts first where there is no such file. */
const FILES_FIRST = [2, 35] as const;
/** An action that ends the search if the source before it does not have the name. */
const STOPS = /(?:^|[[\s])(?:notfound|!(?:success|unavail|tryagain))\s*=\s*return/i;

/** `text`: undefined without such a file. */
export function lookupOrder(text: string | undefined, libc: LibcVersion | undefined): LookupOrder {
  if (libc?.kind === "musl") return USUAL_ORDER;
  const hosts = text === undefined ? undefined : hostsLine(text);
  if (hosts === undefined) return withoutLine(libc);
  const words = (hosts.match(/\[[^\]]*\]|[^\s[]+/g) ?? []).slice(0, WORDS_MAX);
  const [files, dns] = [words.indexOf("files"), words.indexOf("dns")];
  const shown = hosts.length > SHOWN_LENGTH ? `${hosts.slice(0, SHOWN_LENGTH)}...` : hosts;
  const origin = `${PATH} has "hosts: ${shown}"`;
  if (dns < 0) return { file: files < 0 ? "never" : "first", queries: false, origin };
  if (files < 0) return { file: "never", queries: true, origin };
  const first = Math.min(files, dns);
  const action = words[first + 1] ?? "";
  const isEnd = action.startsWith("[") && STOPS.test(action);
  if (files < dns) return isEnd ? { file: "first", queries: false, origin } : USUAL_ORDER;
  return { file: isEnd ? "never" : "after failure", queries: true, origin };
}

/** The last one counts. */
function hostsLine(text: string): string | undefined {
  const lines = text.split("\n").map((line) => withoutComment(line).trim());
  const last = lines.findLast((line) => line.startsWith("hosts:"));
  return last?.slice("hosts:".length).trim().slice(0, LINE_LENGTH);
}

/** glibc has an order of its own: before 2.35, a server that answers has the last word. */
function withoutLine(libc: LibcVersion | undefined): LookupOrder {
  const [major = 0, minor = 0] = libc?.version?.split(".").map(Number) ?? FILES_FIRST;
  const isFirst = major > FILES_FIRST[0] || (major === FILES_FIRST[0] && minor >= FILES_FIRST[1]);
  if (isFirst) return USUAL_ORDER;
  const origin = `without "hosts:" in ${PATH}, glibc before ${FILES_FIRST.join(".")} reads /etc/hosts only if no server answers`;
  return { file: "never", queries: true, origin };
}
