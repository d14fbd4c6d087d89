/**
 * Project names check: SERVICE.PROJECT means something else where a project has the name of a network, whose NAME.NETWORK
 * comes first, or of a domain that the host's servers know, in which other people's names are.
 */
import type { Status } from "../../api/status.ts";
import { queryOf } from "../../base/dns/query.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { mapConcurrent } from "../../base/lib/map-concurrent.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { labelsOf, replyCode } from "../../base/model/name-query.ts";
import type { Server } from "../../base/model/view.ts";
import { composePlaceOf } from "../../container/facts/compose.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { exchange } from "../../container/rules/exchange.ts";
import type { Within } from "../../kernel/net-namespace.ts";
import { REPLY_TIMEOUT_MS } from "./own-name.ts";

const RENAME = "Give the project another name: `name:` in the Compose file, or docker compose -p NAME.";
/** Nobody has that many projects, but anybody who may create containers can claim them. */
const PROJECTS_MAX = 64;
const AT_ONCE = 8;

/** Whether one of the host's servers knows a domain. */
export type KnowsDomain = (domain: string) => Promise<boolean>;

/** Finds nothing where project names are off or dns11 does not run. */
export async function projectNamesFindings(
  status: Pick<Status, "settings"> | undefined,
  facts: readonly ContainerFact[],
  isKnown: KnowsDomain,
): Promise<Finding[]> {
  if (status?.settings["project-names"]?.value !== true) return [];
  const networks = new Set(
    facts.flatMap(({ endpoints }) => endpoints.map(({ networkName }) => networkName.toLowerCase())),
  );
  const findings = await mapConcurrent([...servicesOf(facts)].slice(0, PROJECTS_MAX), AT_ONCE, async (each) => {
    const [project, service] = each;
    const name = `"${service}.${project}"`;
    if (networks.has(project)) {
      const what = `project "${project}" has the name of a network: ${name} is a name on that network first`;
      return [finding("project-names", "warning", what, RENAME)];
    }
    if (!(await isKnown(project))) return [];
    const what = `project "${project}" has the name of a public domain: ${name} is the service, and no longer a name on the Internet`;
    return [finding("project-names", "warning", what, `${RENAME} Or set project-names: false.`)];
  });
  return findings.flat();
}

/** A service of each project. */
function servicesOf(facts: readonly ContainerFact[]): ReadonlyMap<string, string> {
  const services = new Map<string, string>();
  for (const fact of facts) {
    const { project, service } = composePlaceOf(fact) ?? {};
    if (project !== undefined && service !== undefined) services.set(project.toLowerCase(), service);
  }
  return services;
}

/** Asks the first of the host's servers that replies. */
export function knownTo(servers: readonly Server[], within: Within): KnowsDomain {
  return async (domain) => {
    const labels = labelsOf(domain);
    if (labels.length === 0) return false;
    const message = (id: number): Buffer => queryOf({ labels, type: TYPE.SOA, id });
    for (const { address, port } of servers) {
      const request = { destination: address, port, message, protocols: ["udp"], waitMs: REPLY_TIMEOUT_MS } as const;
      const [leg] = await exchange(within, request).catch(() => []);
      const code = leg?.reply === undefined ? undefined : replyCode(leg.reply, leg.id);
      if (code !== undefined) return code === "NOERROR";
    }
    return false;
  };
}
