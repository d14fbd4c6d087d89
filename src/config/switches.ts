/**
 * Switches: the differences between the two characters by the names under which people turn them on and off, as flags
 * and in the settings file.
 */
import type { Behaviour } from "../base/model/behaviour.ts";

interface Switch {
  readonly name: string;
  readonly does: string;
  readonly behaviour: Exclude<keyof Behaviour, "ttlSeconds">;
  readonly needsFailover?: boolean;
}

const NAMED = [
  {
    name: "local-nodata",
    does: "empty answers for other types of known names, instead of asking upstream",
    behaviour: "answersAllTypes",
  },
  {
    name: "negative-soa",
    does: "an SOA in empty answers, so that clients may remember them",
    behaviour: "hasNegativeSoa",
  },
  { name: "edns", does: "answer EDNS as RFC 6891 says", behaviour: "speaksEdns" },
  {
    name: "check-queries",
    does: "answer with an error what only looks like a question for a name",
    behaviour: "checksQueries",
  },
  { name: "long-queries", does: "read UDP queries over 512 octets", behaviour: "readsLongQueries" },
  {
    name: "ignore-case",
    does: "compare links, network suffixes and reverse names without letter case",
    behaviour: "foldsCase",
  },
  { name: "reverse-ipv6", does: "answer ip6.arpa for every address", behaviour: "reversesAllIpv6" },
  { name: "skip-dangling-links", does: "a link to nobody hides nobody's name", behaviour: "skipsDanglingLinks" },
  { name: "pipeline", does: "work on several queries of a TCP connection at once", behaviour: "pipelines" },
  { name: "compress", does: "compress owner names always, not only to fit more", behaviour: "compresses" },
  {
    name: "failover",
    does: "ask within one budget of time, healthy servers first; without it servers are asked as Docker does",
    behaviour: "failsOver",
  },
  { name: "cache", does: "keep servers' replies for as long as they live", behaviour: "caches", needsFailover: true },
  {
    name: "prefetch",
    does: "ask popular replies anew before they are over",
    behaviour: "prefetches",
    needsFailover: true,
  },
  {
    name: "serve-stale",
    does: "let replies that are over stand in for servers that do not answer",
    behaviour: "servesStale",
    needsFailover: true,
  },
  { name: "coalesce", does: "ask identical questions in flight once", behaviour: "merges", needsFailover: true },
  {
    name: "hedge",
    does: "ask a second server when the first is slower than usual",
    behaviour: "hedges",
    needsFailover: true,
  },
  {
    name: "truncation",
    does: "fetch truncated replies whole, and truncate for whoever asked",
    behaviour: "fitsReplies",
    needsFailover: true,
  },
  {
    name: "check-replies",
    does: "read replies strictly, and drop what does not follow from the question",
    behaviour: "checksReplies",
    needsFailover: true,
  },
  {
    name: "extended-errors",
    does: "say in failures why they are (RFC 8914)",
    behaviour: "explainsFailures",
    needsFailover: true,
  },
  { name: "loop-guard", does: "notice servers that lead back to us", behaviour: "guardsLoops", needsFailover: true },
  { name: "special-names", does: "answer special names (RFC 6761) here", behaviour: "answersSpecialNames" },
  { name: "follow-host", does: "follow changes of the host's resolv.conf at once", behaviour: "followsHost" },
] as const satisfies readonly Switch[];

type SwitchName = (typeof NAMED)[number]["name"];

export type SwitchKey = `switches.${SwitchName}`;

/** With the key of the settings file. */
export const SWITCHES: readonly (Switch & { readonly key: SwitchKey })[] = NAMED.map((each) => ({
  ...each,
  key: `switches.${each.name}`,
}));

/** Those that have no effect without failover. */
export const NEEDING_FAILOVER = SWITCHES.filter(({ needsFailover }) => needsFailover === true);
