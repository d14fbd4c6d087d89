/**
 * Causes: why a name fails in a container, most likely first, from what is known; no query is sent. They are guesses, each
 * of which states a fact.
 */
import type { Cause, CauseCode } from "../../api/causes.ts";
import { bareName } from "../../base/dns/name.ts";
import { resolverCauses, searchCauses } from "./client-causes.ts";
import {
  ambiguousCauses,
  containerCauses,
  crashCauses,
  moveCause,
  pausedCauses,
  similarCauses,
} from "./container-causes.ts";
import { connectCommand, joinNetwork } from "./fixes.ts";
import { lostAliasCauses } from "./lost-aliases.ts";
import { hostGatewayCauses, notNameCauses, oddCharacterCauses, suffixCauses } from "./not-names.ts";
import { type Situation, cause, isSingleLabel } from "./situation.ts";
import { dockerCauses, upstreamCauses } from "./upstream-causes.ts";

/** Containers of one name of which it is said. */
const APART_MAX = 2;

/** What musl does then. It ignores any other failure, and waits for an answer until its time is over. */
const NO_NAME = "NXDOMAIN";

/** No failures: there is no such record, or that is not known. */
const EMPTY: ReadonlySet<string | undefined> = new Set([undefined, "NODATA", "no reply", "not queried"]);

const OF_NAME: ReadonlySet<CauseCode> = new Set(["does-not-exist", "upstream-error", "upstream-refused"]);
const ABSENT: ReadonlySet<CauseCode> = new Set(["removed", "renamed", "not-created"]);

export function causesOf(situation: Situation): Cause[] {
  const { failure, isTruncated } = situation;
  return [
    ...(failure === undefined ? answerCauses(situation) : failureCauses(situation)),
    ...(isTruncated ? [cause("truncated", "the answer is truncated for UDP; clients retry over TCP")] : []),
    ...resolverCauses(situation),
    ...searchCauses(situation),
  ];
}

/** What an answer hides. */
function answerCauses(situation: Situation): Cause[] {
  if (situation.isFromUpstream)
    return [
      ...dockerCauses(situation),
      ...shadowCauses(situation),
      ...familyCauses(situation),
      ...routeCauses(situation),
    ];
  const { name, owner, moves } = situation;
  const moved = moves.map((move) => moveCause(name, move, [owner.name], move.agoMs));
  return [
    ...pausedCauses(situation),
    ...crashCauses(situation),
    ...moved,
    ...ambiguousCauses(situation),
    ...apartCauses(situation),
    // The name leads to the other containers of its service.
    ...lostAliasCauses(situation),
  ];
}

/**
 * An upstream server has an answer to what is a container's name elsewhere: usually a wildcard. The client then reaches
 * another machine.
 */
function shadowCauses(situation: Situation): Cause[] {
  // A container that is not there is in nobody's way.
  const elsewhere = containerCauses(situation).find(({ isBreaking, code }) => isBreaking && !ABSENT.has(code));
  if (elsewhere === undefined) return [];
  const sentence = `the answer is not a container's: an upstream server answers for "${situation.name}"; ${elsewhere.sentence}`;
  return [{ ...elsewhere, code: "shadowed", sentence }];
}

function failureCauses(situation: Situation): Cause[] {
  const { refusal } = situation;
  if (refusal?.isCertain === true) return [refusal.cause];
  const causes = containerCauses(situation);
  if (causes.length > 0) return causes;
  const others = [
    ...notNameCauses(situation),
    ...oddCharacterCauses(situation),
    ...hostGatewayCauses(situation),
    ...suffixCauses(situation),
  ];
  if (others.length > 0) return others;
  const isSingle = isSingleLabel(situation.name);
  // A name with dots that resembles a container's is more likely one of the outside world.
  const similar = isSingle ? similarCauses(situation) : [];
  if (similar.length > 0) return similar;
  if (refusal !== undefined) return [refusal.cause];
  const upstream = upstreamCauses(situation);
  // That the name does not exist would be wrong, and that its servers are down is more than this.
  const isOfName = upstream.every(({ code }) => OF_NAME.has(code));
  const contradictory = isOfName ? familyCauses(situation) : [];
  return contradictory.length > 0 ? contradictory : upstream;
}

/**
 * A name whose A and AAAA contradict each other. Most programs ask for both at once, and what they make of it depends on their
 * resolver: the same name works in Debian and fails in Alpine.
 */
function familyCauses({ name, typeName, failure, otherFamily, route }: Situation): Cause[] {
  if (otherFamily === undefined) return [];
  const mine = { type: typeName, failure };
  const [good, bad] = failure === undefined ? [mine, otherFamily] : [otherFamily, mine];
  if (good.failure !== undefined || bad.failure === undefined || EMPTY.has(bad.failure)) return [];
  const servers = (route?.servers ?? []).map(({ server }) => server).join(", ");
  const by = servers === "" ? "" : ` by ${servers}`;
  const musl =
    bad.failure === NO_NAME
      ? "musl (Alpine) says that the name does not exist"
      : "musl (Alpine) waits until its time is over, and fails";
  const sentence =
    `"${name}" has ${good.type} records, and ${bad.type} is answered ${bad.failure}${by}, which contradicts it: ` +
    `glibc and Go use what there is, ${musl}`;
  const advice = `have ${bad.type} of "${name}" answered without an error and without a record, as for a name that has only ${good.type}`;
  return [cause("one-family", sentence, { advice })];
}

/** Addresses that a program tries first, or has no others than. */
function routeCauses({ name, owner, unroutable }: Situation): Cause[] {
  if (unroutable === undefined) return [];
  const { addresses, from } = unroutable;
  const sentence = `"${name}" has IPv6 addresses that programs in ${owner.name} try first (${addresses.join(", ")}), and ${from} has no route to them: connecting fails, or takes long`;
  return [
    cause("no-ipv6-route", sentence, {
      advice: "give it IPv6, or take its IPv6 address away, so that IPv4 comes first",
    }),
  ];
}

/** Addresses that Docker keeps the client from reaching, and why one on another network was answered. */
function apartCauses({ name, client, apart = [], ...known }: Situation): Cause[] {
  return apart.slice(0, APART_MAX).map(({ container, network, by, isAnswered, other, joinable }) => {
    const where = `on network ${network}, whose containers cannot reach each other (${by})`;
    const about = network;
    if (!isAnswered)
      return cause("kept-apart", `"${name}" is container ${container}, which is also ${where}`, { about });
    const sentence = `"${name}" is container ${container} ${where}: it is not DNS that connecting fails`;
    if (other !== undefined) {
      const [first = ""] = bareName(name).split(".", 1);
      return cause("kept-apart", sentence, { about, advice: `look up "${first}.${other}", where both are, too` });
    }
    const target = joinable === undefined ? undefined : known.known.all.find((each) => each.name === container);
    if (target === undefined || joinable === undefined) {
      const advice = `connect ${client.name} and ${container} to a network of their own, or create ${network} again without that option`;
      return cause("kept-apart", sentence, { about, advice });
    }
    const lastingFix = joinNetwork(target, joinable, known);
    return cause("kept-apart", sentence, { about, fix: connectCommand(target, joinable, known), lastingFix });
  });
}
