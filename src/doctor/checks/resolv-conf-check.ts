/**
 * Resolv.conf check: how the C library in a container reads its resolv.conf. It sends no query: the cost of a search list, and
 * the mistakes that the C library ignores silently, follow from the text.
 */
import { commandOf } from "../../base/lib/text.ts";
import { isSameAddress } from "../../base/model/address.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { HostServers } from "../../container/watch/host-file.ts";
import type { ComposeService } from "../../container/facts/compose.ts";
import { type Finding, type FindingState, finding } from "../../base/model/finding.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { type ResolvConf, parseResolvConf } from "../../container/watch/resolv-conf.ts";

/** The file as the container sees it. */
export interface ContainerResolvConf {
  /** undefined if it cannot be read. */
  readonly text: string | undefined;
  /** "mounted": another file is mounted over the engine's; "unknown": the container's files cannot be read. */
  readonly origin: "engine" | "mounted" | "unknown";
}

/** The number of nameservers that C libraries read. */
const SERVERS_MAX = 3;
/** glibc silently caps ndots at this. */
const NDOTS_MAX = 15;
const NDOTS_DEFAULT = 1;
/** Enough queries for one name to be noticeable. */
const MANY_QUERIES = 4;
/** The options of glibc and musl, which ignore unknown ones silently. */
const NUMBERED = new Set(["ndots", "timeout", "attempts"]);
const PLAIN = new Set([
  ...["debug", "rotate", "no-check-names", "inet6", "ip6-bytestring", "ip6-dotint", "no-ip6-dotint", "edns0"],
  ...["single-request", "single-request-reopen", "no-tld-query", "use-vc", "no-reload", "trust-ad", "no-aaaa"],
]);
/** What dockerd 29.0 to 29.2 writes in place of each server after a reload. */
const GARBLED = /^(?:nameserver |# ExtServers: \[.*)\binvalid IP\b/m;
const USE_NEWER_DOCKER =
  "Use Docker 29.3 or later; until then, restart Docker in place of reloading it. Then restart the container.";
/** What Docker writes where the host's file names nothing that a container could reach. */
const DOCKERS_OWN = ["8.8.8.8", "8.8.4.4", "2001:4860:4860::8888", "2001:4860:4860::8844"];
const MOUNTED = "; the file is a mount, not the one that Docker wrote";
const EDITED = "; the file was edited after Docker wrote it";
const LET_DOCKER_REWRITE = "Restart the container: Docker then writes the file again.";
const REMOVE_MOUNT =
  "Remove the mount over /etc/resolv.conf, and create the container again: a restart keeps its mounts.";

/** `isServed`: the container has Docker's resolver, so its file must name 127.0.0.11. */
export function resolvConfFindings(
  { text, origin }: ContainerResolvConf,
  isServed: boolean,
  compose?: Pick<ComposeService, "service" | "file">,
): Finding[] {
  const how = (option: string, value: string): string =>
    compose === undefined
      ? `docker run --${option.replace("_", "-")} ${value}`
      : `services.${compose.service}.${option} in ${compose.file ?? "the Compose file"}`;
  const rewrite = origin === "mounted" ? REMOVE_MOUNT : LET_DOCKER_REWRITE;
  if (text === undefined) {
    const detail = "the file is missing or unreadable, so the C library queries 127.0.0.1";
    return [finding("resolv-conf", origin === "unknown" ? "unknown" : "problem", detail, rewrite)];
  }
  const conf = parseResolvConf(text);
  return [
    targetFinding(conf, {
      origin: originText(text, origin, isServed),
      isServed,
      isGarbled: GARBLED.test(text),
      rewrite,
    }),
    optionsFinding(conf.options, how("dns_opt", "OPTION")),
    searchFinding(conf.search, conf.options, how("dns_opt", "ndots:0")),
  ];
}

/**
 * For its own resolver the engine writes one nameserver line and one line each for search and options. The checksum that it
 * keeps beside the file is of an earlier text, so it does not show an edit.
 */
function originText(text: string, origin: ContainerResolvConf["origin"], isServed: boolean): string {
  if (origin === "mounted") return MOUNTED;
  const directives = text.split("\n").map((line) => line.trim().split(/\s+/)[0] ?? "");
  const isDoubled = ["nameserver", "search", "options"].some(
    (directive) => directives.filter((each) => each === directive).length > 1,
  );
  return isServed && (isDoubled || !directives.includes("nameserver")) ? EDITED : "";
}

/**
 * A container without Docker's resolver has the host's file as it was when it started, and asks servers that may be gone: on the
 * host's network always, on the default bridge unless dns11 serves it.
 */
export function staleCopyFindings(
  text: string,
  host: Pick<HostServers, "nameservers" | "uplinks">,
  { name, networkMode }: Pick<ContainerFact, "name" | "networkMode">,
): Finding[] {
  const current = [...host.nameservers, ...host.uplinks, ...DOCKERS_OWN];
  const gone = parseResolvConf(text).nameservers.filter((each) => !current.some((now) => isSameAddress(now, each)));
  if (gone.length === 0) return [];
  const now = host.nameservers.length === 0 ? "none" : host.nameservers.join(", ");
  const detail = `it asks ${gone.join(", ")}, as the host did when it started; the host's resolv.conf names ${now} today`;
  const fixNow = commandOf("docker", "restart", name);
  const follow =
    networkMode === "host"
      ? ""
      : " With default-bridge: names, dns11 asks the servers of the host, whatever the file says.";
  return [{ ...finding("resolv-conf", "warning", detail, `Run: ${fixNow}.${follow}`), fixNow }];
}

interface FileParts {
  readonly origin: string;
  readonly isServed: boolean;
  readonly isGarbled: boolean;
  /** What brings Docker's own file back. */
  readonly rewrite: string;
}

function targetFinding(
  { nameservers: servers, invalid }: ResolvConf,
  { origin, isServed, isGarbled, rewrite }: FileParts,
): Finding {
  const report = (state: FindingState, text: string, remedy?: string): Finding =>
    finding("resolv-conf", state, text + origin, remedy);
  if (isGarbled) {
    const detail = `Docker has written "invalid IP" in place of a server, as versions 29.0 to 29.2 do after a reload, so Docker answers no name outside`;
    return report("problem", detail, USE_NEWER_DOCKER);
  }
  const listed = `nameserver ${servers.join(", ")}`;
  if (servers.length === 0) return report("problem", "no nameserver, so the C library queries 127.0.0.1", rewrite);
  if (invalid.length > 0) {
    return report(
      "problem",
      `${listed}; invalid address ${invalid.join(", ")}`,
      "Correct or remove the invalid lines.",
    );
  }
  if (!isServed) return report("ok", listed);
  if (!servers.slice(0, SERVERS_MAX).includes(DOCKER_RESOLVER)) {
    const detail = `${listed}; ${DOCKER_RESOLVER} is not among the first ${SERVERS_MAX}, so container names cannot resolve`;
    return report("problem", detail, rewrite);
  }
  if (servers.length > 1) {
    const detail = `${listed}; a C library that queries all of them at once, as musl does, may take another server's NXDOMAIN for a container name`;
    return report(
      "warning",
      detail,
      `Name only ${DOCKER_RESOLVER} in resolv.conf, and set other servers with docker run --dns.`,
    );
  }
  return report(origin === "" ? "ok" : "warning", listed);
}

function optionsFinding(options: readonly string[], how: string): Finding {
  const mistakes = options.flatMap((option) => mistakeIn(option));
  if (mistakes.length > 0) {
    const detail = `the C library reports none of these mistakes: ${mistakes.join("; ")}`;
    return finding("resolv-options", "warning", detail, `Correct them: ${how}, or the mounted file.`);
  }
  return finding("resolv-options", "ok", options.join(" ") || "none");
}

function mistakeIn(option: string): string[] {
  const [word = "", value] = option.split(/:(.*)/s, 2);
  if (PLAIN.has(word)) return value === undefined ? [] : [`"${option}": ${word} takes no value`];
  if (!NUMBERED.has(word)) return [`"${option}" is not a known option`];
  if (value === undefined || !/^\d+$/.test(value)) return [`"${option}" needs a number`];
  if (word === "ndots" && Number(value) > NDOTS_MAX) return [`"${option}" is read as ndots:${NDOTS_MAX}`];
  return word !== "ndots" && Number(value) === 0 ? [`"${option}" must be at least 1`] : [];
}

/** A name with fewer dots than ndots is first looked up below every search domain, for IPv4 and IPv6 each. */
function searchFinding(search: readonly string[], options: readonly string[], how: string): Finding {
  const domains = search.filter((domain) => domain !== ".");
  const ndots = ndotsIn(options);
  if (domains.length === 0) return finding("search", "ok", `empty, ndots ${ndots}`);
  const queries = 2 * (domains.length + 1);
  const list = `${domains.join(" ")}, ndots ${ndots}`;
  if (ndots <= 1 || queries < MANY_QUERIES) return finding("search", "ok", list);
  const example = ["www", "example", "com"].slice(-Math.max(2, Math.min(ndots, 3))).join(".");
  const detail = `${list}: a name with fewer than ${ndots} dots, such as ${example}, takes up to ${queries} queries, the first for ${example}.${domains[0]}`;
  return finding(
    "search",
    "warning",
    detail,
    `Write such names with a trailing dot (${example}.), or set ndots:0, as Docker does: ${how}.`,
  );
}

function ndotsIn(options: readonly string[]): number {
  const setting = options.findLast((option) => /^ndots:\d+$/.test(option))?.slice("ndots:".length);
  return setting === undefined ? NDOTS_DEFAULT : Math.min(Number(setting), NDOTS_MAX);
}
