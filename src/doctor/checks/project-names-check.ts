/**
 * Project names check: SERVICE.PROJECT means something else where a project has the name of a network, whose NAME.NETWORK
 * comes first, or of a public domain, in which other people's names are.
 */
import type { Status } from "../../api/status.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { composePlaceOf } from "../../container/registry/compose.ts";
import type { ContainerFact } from "../../container/registry/fact.ts";
import { isPublicDomain } from "./top-level-domains.ts";

const RENAME = "Give the project another name: `name:` in the Compose file, or docker compose -p NAME.";

/** Nothing where project names are off or dns11 does not run. */
export function projectNamesFindings(
  status: Pick<Status, "settings"> | undefined,
  facts: readonly ContainerFact[],
): Finding[] {
  if (status?.settings["switches.project-names"]?.value !== true) return [];
  const networks = new Set(
    facts.flatMap(({ endpoints }) => endpoints.map(({ networkName }) => networkName.toLowerCase())),
  );
  const services = new Map<string, string>();
  for (const fact of facts) {
    const { project, service } = composePlaceOf(fact) ?? {};
    if (project !== undefined && service !== undefined) services.set(project.toLowerCase(), service);
  }
  return [...services].flatMap(([project, service]) => {
    const name = `"${service}.${project}"`;
    if (networks.has(project)) {
      const what = `project "${project}" has the name of a network: ${name} is a name on that network first`;
      return [finding("project-names", "warning", what, RENAME)];
    }
    if (!isPublicDomain(project)) return [];
    const what = `project "${project}" has the name of a public domain: ${name} is the service, and no longer a name on the Internet`;
    return [finding("project-names", "warning", what, `${RENAME} Or turn off the switch project-names.`)];
  });
}
