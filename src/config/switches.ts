/**
 * Switches: the differences between the two characters by the names under which people turn them on and off, as flags
 * and in the settings file.
 */
import type { Behaviour } from "../base/model/behaviour.ts";

interface Switch {
  readonly name: string;
  readonly description: string;
  readonly behaviour: Exclude<keyof Behaviour, "ttlSeconds">;
  readonly needsFailover?: boolean;
}

const DEFINITIONS = [
  {
    name: "local-nodata",
    description: "empty answers for other types of known names, instead of asking upstream",
    behaviour: "answersAllTypes",
  },
  {
    name: "negative-soa",
    description: "an SOA in empty answers, so that clients may remember them",
    behaviour: "hasNegativeSoa",
  },
  { name: "edns", description: "answer EDNS as RFC 6891 says", behaviour: "speaksEdns" },
  {
    name: "check-queries",
    description: "answer with an error what only looks like a question for a name",
    behaviour: "checksQueries",
  },
  { name: "long-queries", description: "read UDP queries over 512 octets", behaviour: "readsLongQueries" },
  {
    name: "ignore-case",
    description: "compare links, network suffixes and reverse names without letter case",
    behaviour: "ignoresCase",
  },
  { name: "reverse-ipv6", description: "answer ip6.arpa for every address", behaviour: "reversesAllIpv6" },
  { name: "skip-dangling-links", description: "a link to nobody hides nobody's name", behaviour: "skipsDanglingLinks" },
  { name: "pipeline", description: "work on several queries of a TCP connection at once", behaviour: "pipelines" },
  { name: "compress", description: "compress owner names always, not only to fit more", behaviour: "compresses" },
  {
    name: "failover",
    description: "ask within one budget of time, healthy servers first; without it servers are asked as Docker does",
    behaviour: "failsOver",
  },
  {
    name: "cache",
    description: "keep servers' replies for as long as they live",
    behaviour: "caches",
    needsFailover: true,
  },
  {
    name: "prefetch",
    description: "ask popular replies anew before they are over",
    behaviour: "prefetches",
    needsFailover: true,
  },
  {
    name: "serve-stale",
    description: "let replies that are over stand in for servers that do not answer",
    behaviour: "servesStale",
    needsFailover: true,
  },
  {
    name: "coalesce",
    description: "ask identical questions in flight once",
    behaviour: "coalesces",
    needsFailover: true,
  },
  {
    name: "hedge",
    description: "ask a second server when the first is slower than usual",
    behaviour: "hedges",
    needsFailover: true,
  },
  {
    name: "truncation",
    description: "fetch truncated replies whole, and truncate for whoever asked",
    behaviour: "handlesTruncation",
    needsFailover: true,
  },
  {
    name: "check-replies",
    description: "read replies strictly, and drop what does not follow from the question",
    behaviour: "checksReplies",
    needsFailover: true,
  },
  {
    name: "extended-errors",
    description: "say in failures why they are (RFC 8914)",
    behaviour: "sendsExtendedErrors",
    needsFailover: true,
  },
  {
    name: "loop-guard",
    description: "notice servers that lead back to us",
    behaviour: "guardsLoops",
    needsFailover: true,
  },
  { name: "special-names", description: "answer special names (RFC 6761) here", behaviour: "answersSpecialNames" },
  { name: "follow-host", description: "follow changes of the host's resolv.conf at once", behaviour: "followsHost" },
] as const satisfies readonly Switch[];

type SwitchName = (typeof DEFINITIONS)[number]["name"];

export type SwitchKey = `switches.${SwitchName}`;

/** With the key of the settings file. */
export const SWITCHES: readonly (Switch & { readonly key: SwitchKey })[] = DEFINITIONS.map((each) => ({
  ...each,
  key: `switches.${each.name}`,
}));

/** Those that have no effect without failover. */
export const NEEDING_FAILOVER = SWITCHES.filter(({ needsFailover }) => needsFailover === true);
