import { mapConcurrent } from "../../base/lib/async.ts";
import { type Finding, findingsOf } from "../../base/model/finding.ts";
import { composeServiceOf } from "../../container/facts/compose.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { CheckedContainers, CheckedMachine } from "../contract.ts";

export const checks = {
  "project-names": {
    title: "project names",
    examines:
      "whether a Compose project has the name of a network or of a public domain, which makes SERVICE.PROJECT mean something else",
  },
};
const finding = findingsOf(checks);

const RENAME = "Give the project another name: `name:` in the Compose file, or docker compose -p NAME.";
/** Nobody has that many projects, but anybody who may create containers can claim them. */
const PROJECTS_MAX = 64;
const AT_ONCE = 8;

/**
 * SERVICE.PROJECT means something else where a project has the name of a network, whose NAME.NETWORK comes first, or of a domain that
 * the host's servers know, in which other people's names are. Nothing is found where project names are off or dns11 does not run.
 */
export async function containersFindings(
  { facts, isKnownDomain }: Pick<CheckedContainers, "facts" | "isKnownDomain">,
  { status }: Pick<CheckedMachine, "status">,
): Promise<readonly Finding[]> {
  if (status?.settings["project-names"]?.value !== true) return [];
  const networks = new Set(
    facts.flatMap(({ endpoints }) => endpoints.map(({ networkName }) => networkName.toLowerCase())),
  );
  const found = await mapConcurrent([...servicesOf(facts)].slice(0, PROJECTS_MAX), AT_ONCE, async (each) => {
    const [project, service] = each;
    const name = `"${service}.${project}"`;
    if (networks.has(project)) {
      const what = `project "${project}" has the name of a network: ${name} is a name on that network first`;
      return [finding("project-names", "warning", what, RENAME)];
    }
    if (!(await isKnownDomain(project))) return [];
    const what = `project "${project}" has the name of a public domain: ${name} is the service, and no longer a name on the Internet`;
    return [finding("project-names", "warning", what, `${RENAME} Or set project-names: false.`)];
  });
  return found.flat();
}

/** A service of each project. */
function servicesOf(facts: readonly ContainerFact[]): ReadonlyMap<string, string> {
  const services = new Map<string, string>();
  for (const fact of facts) {
    const { project, service } = composeServiceOf(fact) ?? {};
    if (project !== undefined && service !== undefined) services.set(project.toLowerCase(), service);
  }
  return services;
}
