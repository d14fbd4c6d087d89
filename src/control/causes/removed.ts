/**
 * Removed: a name that a container had until lately. Nothing of a removed container is left on the engine, so only what
 * dns11 has seen of it tells what the name was.
 */
import { bareName } from "../../base/dns/name.ts";
import type { Cause } from "../../api/causes.ts";
import { ageText } from "../../base/lib/age.ts";
import { upCommand } from "./fixes.ts";
import { type Situation, cause } from "./situation.ts";

export function removedCauses({ former = [], known, name, owner }: Situation, own: ReadonlySet<string>): Cause[] {
  const bare = bareName(name);
  const gone = former.filter(
    ({ containerId, names, networkName }) =>
      known.byId(containerId) === undefined &&
      (names.includes(bare) || names.some((each) => `${each}.${networkName.toLowerCase()}` === bare)),
  );
  const last = gone.findLast(({ networkName }) => own.has(networkName)) ?? gone.at(-1);
  if (last === undefined) return [];
  const { container, networkName, atMs } = last;
  const sentence = `"${name}" was container ${container}, which was removed ${ageText(performance.now() - atMs)} ago (network ${networkName})`;
  const fix = upCommand(last) ?? null;
  const advice = fix === null ? { advice: `run ${container} again on a network of ${owner.name}` } : {};
  return [cause("removed", sentence, { fix, ...advice, isBreaking: true })];
}
