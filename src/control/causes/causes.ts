/**
 * Causes: why a name fails in a container, most likely first, from what is known; no query is sent. They are guesses, each
 * of which states a fact.
 */
import type { Cause } from "../../api/causes.ts";
import { resolverCauses, searchCauses } from "./client-causes.ts";
import { ambiguousCauses, containerCauses, crashCauses, pausedCauses, similarCauses } from "./container-causes.ts";
import { lostAliasCauses } from "./lost-aliases.ts";
import { moveCause } from "./moves.ts";
import { hostGatewayCauses, notNameCauses } from "./not-names.ts";
import { policyCauses } from "./policy-causes.ts";
import { type Situation, cause } from "./situation.ts";
import { upstreamCauses } from "./upstream-causes.ts";

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
  if (situation.isFromUpstream) return shadowCauses(situation);
  const { name, owner, moves } = situation;
  const moved = moves.map((move) => moveCause(name, move, [owner.name], move.agoMs));
  return [
    ...pausedCauses(situation),
    ...crashCauses(situation),
    ...moved,
    ...ambiguousCauses(situation),
    // The name leads to the other containers of its service.
    ...lostAliasCauses(situation),
  ];
}

/**
 * An upstream server has an answer to what is a container's name elsewhere: usually a wildcard. The client then reaches
 * another machine.
 */
function shadowCauses(situation: Situation): Cause[] {
  // A container that is gone is in nobody's way.
  const elsewhere = containerCauses(situation).find(({ isBreaking, code }) => isBreaking && code !== "removed");
  if (elsewhere === undefined) return [];
  const sentence = `the answer is not a container's: an upstream server answers for "${situation.name}"; ${elsewhere.sentence}`;
  return [{ ...elsewhere, code: "shadowed", sentence }];
}

function failureCauses(situation: Situation): Cause[] {
  if (situation.policy?.isCertain === true) return policyCauses(situation);
  const causes = containerCauses(situation);
  if (causes.length > 0) return causes;
  const others = [...notNameCauses(situation), ...hostGatewayCauses(situation)];
  if (others.length > 0) return others;
  const isSingle = !situation.name.replace(/\.$/, "").includes(".");
  // A name with dots that resembles a container's is more likely one of the outside world.
  const similar = isSingle ? similarCauses(situation) : [];
  if (similar.length > 0) return similar;
  const refused = policyCauses(situation);
  return refused.length > 0 ? refused : upstreamCauses(situation);
}
