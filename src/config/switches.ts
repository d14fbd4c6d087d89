/**
 * Switches: the differences between the modes default and strict, each with the name that turns it on or off as a flag and
 * in the settings file.
 */
import type { Behaviour } from "../base/model/behaviour.ts";

interface Switch {
  readonly name: string;
  /** What the switch does when it is on, for the settings file. */
  readonly description: string;
  /** What happens when it is off, for the help of `--no-NAME`. */
  readonly negation: string;
  readonly behaviour: Exclude<keyof Behaviour, "ttlSeconds">;
  readonly needsFailover?: boolean;
}

const DEFINITIONS = [
  {
    name: "local-nodata",
    description: "answer queries for other types of known names with NODATA instead of forwarding them",
    negation: "forward queries for other types of known names instead of answering NODATA",
    behaviour: "answersAllTypes",
  },
  {
    name: "negative-soa",
    description: "add an SOA record to negative answers, so that clients can cache them",
    negation: "leave out the SOA record in negative answers",
    behaviour: "hasNegativeSoa",
  },
  {
    name: "edns",
    description: "support EDNS as in RFC 6891",
    negation: "do not support EDNS (RFC 6891)",
    behaviour: "speaksEdns",
  },
  {
    name: "check-queries",
    description: "answer unsupported or malformed queries with an error",
    negation: "treat unsupported and malformed queries as Docker does",
    behaviour: "checksQueries",
  },
  {
    name: "long-queries",
    description: "accept UDP queries larger than 512 bytes",
    negation: "reject UDP queries larger than 512 bytes",
    behaviour: "readsLongQueries",
  },
  {
    name: "ignore-case",
    description: "ignore letter case in links, network suffixes and reverse names",
    negation: "match the letter case of links, network suffixes and reverse names",
    behaviour: "ignoresCase",
  },
  {
    name: "reverse-ipv6",
    description: "answer ip6.arpa queries for every address",
    negation: "answer ip6.arpa queries only where Docker does",
    behaviour: "reversesAllIpv6",
  },
  {
    name: "skip-dangling-links",
    description: "ignore a link whose target does not exist, so that a container of the same name is found",
    negation: "do not find a container if a link of the same name exists, even if the link's target does not",
    behaviour: "skipsDanglingLinks",
  },
  {
    name: "pipeline",
    description: "process several queries of a TCP connection concurrently",
    negation: "process the queries of a TCP connection one at a time",
    behaviour: "pipelines",
  },
  {
    name: "compress",
    description: "compress owner names in every answer, not only if it would not fit otherwise",
    negation: "do not compress owner names unless the reply would not fit",
    behaviour: "compresses",
  },
  {
    name: "failover",
    description: "fail over between upstream servers within one time budget, healthy servers first",
    negation: "query upstream servers one after the other, as Docker does",
    behaviour: "failsOver",
  },
  {
    name: "cache",
    description: "cache upstream replies",
    negation: "do not cache upstream replies",
    behaviour: "caches",
    needsFailover: true,
  },
  {
    name: "prefetch",
    description: "refresh popular entries before they expire",
    negation: "do not refresh popular entries before they expire",
    behaviour: "prefetches",
    needsFailover: true,
  },
  {
    name: "serve-stale",
    description: "serve expired answers when upstream servers fail (RFC 8767)",
    negation: "do not serve expired answers when upstream servers fail (RFC 8767)",
    behaviour: "servesStale",
    needsFailover: true,
  },
  {
    name: "coalesce",
    description: "merge identical in-flight queries",
    negation: "send identical in-flight queries separately",
    behaviour: "coalesces",
    needsFailover: true,
  },
  {
    name: "hedge",
    description: "query a second server when the first is slower than usual",
    negation: "wait for a slow server instead of querying a second one",
    behaviour: "hedges",
    needsFailover: true,
  },
  {
    name: "truncation",
    description: "retry truncated replies over TCP, and truncate to the size that the client accepts",
    negation: "pass truncated replies on as received",
    behaviour: "handlesTruncation",
    needsFailover: true,
  },
  {
    name: "check-replies",
    description: "validate replies strictly, and drop records that do not belong to the question",
    negation: "pass replies on without strict validation",
    behaviour: "checksReplies",
    needsFailover: true,
  },
  {
    name: "extended-errors",
    description: "add the reason to failure replies (Extended DNS Errors, RFC 8914)",
    negation: "do not add the reason to failure replies (RFC 8914)",
    behaviour: "sendsExtendedErrors",
    needsFailover: true,
  },
  {
    name: "loop-guard",
    description: "detect upstream servers that forward back to dns11",
    negation: "do not detect upstream servers that forward back to dns11",
    behaviour: "guardsLoops",
    needsFailover: true,
  },
  {
    name: "special-names",
    description: "answer special-use names (RFC 6761) locally",
    negation: "forward special-use names (RFC 6761)",
    behaviour: "answersSpecialNames",
  },
  {
    name: "extra-names",
    description: "treat aliases such as *.shop.test as wildcards, and honour the label io.dns11.names",
    negation: "compare aliases such as *.shop.test literally, and ignore the label io.dns11.names",
    behaviour: "answersExtraNames",
  },
  {
    name: "project-names",
    description: "answer SERVICE.PROJECT with the containers of a Compose service",
    negation: "do not answer SERVICE.PROJECT, the names of Compose services",
    behaviour: "answersProjectNames",
  },
  {
    name: "own-project",
    description:
      "if services of several Compose projects have a name on one network, answer with the client's own project",
    negation: "if services of several Compose projects have a name on one network, answer with all of them",
    behaviour: "prefersOwnProject",
  },
  {
    name: "extra-hosts",
    description: "answer the names that --add-host (extra_hosts) gave a container",
    negation: "do not answer the names that --add-host (extra_hosts) gave a container",
    behaviour: "answersExtraHosts",
  },
  {
    name: "follow-host",
    description: "apply changes of the host's resolv.conf at once",
    negation: "apply changes of the host's resolv.conf only to new containers",
    behaviour: "followsHost",
  },
] as const satisfies readonly Switch[];

type SwitchName = (typeof DEFINITIONS)[number]["name"];

export type SwitchKey = `switches.${SwitchName}`;

/** All switches, with their keys in the settings file. */
export const SWITCHES: readonly (Switch & { readonly key: SwitchKey })[] = DEFINITIONS.map((each) => ({
  ...each,
  key: `switches.${each.name}`,
}));

/** Switches that have no effect without failover. */
export const NEEDING_FAILOVER = SWITCHES.filter(({ needsFailover }) => needsFailover === true);
