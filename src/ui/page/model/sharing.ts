/**
 * Sharing: containers in the network namespace of another one. They are on its networks and their queries are its own: nobody can tell them
 * apart.
 */
import type { ContainerReport, ContainersReport } from "../../../api/containers.ts";

/** The key is the name of the container, the value the one whose namespace it uses. */
export type Sharing = ReadonlyMap<string, ContainerReport>;

export function sharingOf(report: ContainersReport | null): Sharing {
  const all = report?.containers ?? [];
  if (all.every(({ sharesWith }) => sharesWith === undefined)) return new Map();
  const byName = new Map(all.map((each) => [each.name, each]));
  return new Map(
    all.flatMap(({ name, sharesWith }) => {
      const owner = sharesWith === undefined ? undefined : byName.get(sharesWith);
      return owner === undefined ? [] : [[name, owner] as const];
    }),
  );
}
