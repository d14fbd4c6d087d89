/** Scope: which Compose project the page shows; null for all containers. */
export interface Scope {
  readonly project: string | null;
}

interface Placed {
  readonly project: string | null;
}

export function inScope({ project }: Scope, placed: Placed): boolean {
  return project === null || placed.project === project;
}

/** The projects of these, each once. */
export function projectsOf(all: readonly Placed[]): string[] {
  const projects = all.flatMap(({ project }) => (project === null ? [] : [project]));
  return [...new Set(projects)].toSorted();
}

/** `shop-api-1` of project `shop` is read as `api-1` by somebody who looks at that project only. */
export function shortName(name: string, scope: Scope): string {
  const prefix = scope.project === null ? "" : `${scope.project}-`;
  return prefix !== "" && name.startsWith(prefix) && name.length > prefix.length ? name.slice(prefix.length) : name;
}
