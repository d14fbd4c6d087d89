/**
 * Resolv.conf check: what the C library in a container makes of its resolv.conf. Nothing is asked here; what a search list
 * costs, and which mistakes of it nobody tells, stands in the text.
 */
import { type Finding, type FindingState, finding } from "../../base/model/finding.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { type ResolvConf, parseResolvConf } from "../../container/watch/resolv-conf.ts";

/** The file as it was found. */
export interface ContainerResolvConf {
  /** undefined where it cannot be read. */
  readonly text: string | undefined;
  /** "mounted": another file than the engine's stands there; "unknown": the container's own files are not to be seen. */
  readonly origin: "engine" | "mounted" | "unknown";
}

/** Every C library reads so many and no more. */
const SERVERS_MAX = 3;
/** glibc takes no more than this for ndots, and says nothing. */
const NDOTS_MAX = 15;
const NDOTS_DEFAULT = 1;
/** So many queries for one name are felt. */
const MANY_QUERIES = 4;
/** glibc's and musl's; a word that is none of them is passed over in silence. */
const NUMBERED = new Set(["ndots", "timeout", "attempts"]);
const PLAIN = new Set([
  ...["debug", "rotate", "no-check-names", "inet6", "ip6-bytestring", "ip6-dotint", "no-ip6-dotint", "edns0"],
  ...["single-request", "single-request-reopen", "no-tld-query", "use-vc", "no-reload", "trust-ad", "no-aaaa"],
]);
const MOUNTED = "; it is a file that was mounted there, not the engine's";
const EDITED = "; somebody edited it since the engine wrote it";
const LET_DOCKER_REWRITE = "Take the mount or the edit away and start the container anew: then the engine writes it.";

/** `isServed` says whether the container has Docker's resolver, so that its file has to name it. */
export function resolvConfFindings({ text, origin }: ContainerResolvConf, isServed: boolean): Finding[] {
  if (text === undefined) {
    const detail = "it is not there, or not a file that can be read: the C library then asks 127.0.0.1";
    return [finding("resolv-conf", origin === "unknown" ? "unknown" : "problem", detail, LET_DOCKER_REWRITE)];
  }
  const conf = parseResolvConf(text);
  return [
    targetFinding(conf, originText(text, origin, isServed), isServed),
    optionsFinding(conf.options),
    searchFinding(conf.search, conf.options),
  ];
}

/**
 * For its own resolver the engine writes one server, and one line each of search list and options. The sum that it keeps
 * beside the file is of an earlier text, so it does not tell.
 */
function originText(text: string, origin: ContainerResolvConf["origin"], isServed: boolean): string {
  if (origin === "mounted") return MOUNTED;
  const directives = text.split("\n").map((line) => line.trim().split(/\s+/)[0] ?? "");
  const isDoubled = ["nameserver", "search", "options"].some(
    (directive) => directives.filter((each) => each === directive).length > 1,
  );
  return isServed && (isDoubled || !directives.includes("nameserver")) ? EDITED : "";
}

function targetFinding({ nameservers: servers, invalid }: ResolvConf, origin: string, isServed: boolean): Finding {
  const tell = (state: FindingState, text: string, remedy?: string): Finding =>
    finding("resolv-conf", state, text + origin, remedy);
  const named = `names ${servers.join(", ") || "nobody"}`;
  if (servers.length === 0) return tell("problem", `${named}: the C library then asks 127.0.0.1`, LET_DOCKER_REWRITE);
  if (invalid.length > 0) {
    return tell("problem", `${named}, and what is no address: ${invalid.join(", ")}`, "Correct those lines.");
  }
  if (!isServed) return tell("ok", named);
  if (!servers.slice(0, SERVERS_MAX).includes(DOCKER_RESOLVER)) {
    const detail = `${named}, and not ${DOCKER_RESOLVER}: names of containers are asked where nobody knows them`;
    return tell("problem", detail, LET_DOCKER_REWRITE);
  }
  if (servers.length > 1) {
    const detail = `${named}: whoever asks all at once, as musl does, may take the others' denial of a container's name`;
    return tell("warning", detail, `Name ${DOCKER_RESOLVER} alone; other servers are given with --dns.`);
  }
  return tell(origin === "" ? "ok" : "warning", named);
}

function optionsFinding(options: readonly string[]): Finding {
  const wrong = options.flatMap((option) => mistakeIn(option));
  if (wrong.length > 0) {
    const detail = `${wrong.join("; ")}. The C library says nothing, and goes on without`;
    return finding("resolv-options", "warning", detail, "Correct them with --dns-opt, or in the file that is mounted.");
  }
  return finding("resolv-options", "ok", options.join(" ") || "none");
}

function mistakeIn(option: string): string[] {
  const [word = "", value] = option.split(/:(.*)/s, 2);
  if (PLAIN.has(word)) return value === undefined ? [] : [`"${option}": ${word} takes no number`];
  if (!NUMBERED.has(word)) return [`"${option}" is no option`];
  if (value === undefined || !/^\d+$/.test(value)) return [`"${option}" lacks its number`];
  if (word === "ndots" && Number(value) > NDOTS_MAX) return [`"${option}" is read as ndots:${NDOTS_MAX}`];
  return word !== "ndots" && Number(value) === 0 ? [`"${option}" gives no time`] : [];
}

/** A name with fewer dots than ndots is first asked below every domain of the list, for IPv4 and IPv6 each. */
function searchFinding(search: readonly string[], options: readonly string[]): Finding {
  const domains = search.filter((domain) => domain !== ".");
  const ndots = ndotsIn(options);
  if (domains.length === 0) return finding("search", "ok", `empty, ndots ${ndots}`);
  const queries = 2 * (domains.length + 1);
  const list = `${domains.join(" ")}, ndots ${ndots}`;
  if (ndots <= 1 || queries < MANY_QUERIES) return finding("search", "ok", list);
  const example = ["www", "example", "com"].slice(-Math.max(2, Math.min(ndots, 3))).join(".");
  const detail = `${list}: a name with fewer than ${ndots} dots, such as ${example}, costs up to ${queries} queries, and is asked below ${domains[0]} first`;
  return finding(
    "search",
    "warning",
    detail,
    `Write such names with a dot at their end (${example}.), or set ndots:1.`,
  );
}

function ndotsIn(options: readonly string[]): number {
  const said = options.findLast((option) => /^ndots:\d+$/.test(option))?.slice("ndots:".length);
  return said === undefined ? NDOTS_DEFAULT : Math.min(Number(said), NDOTS_MAX);
}
