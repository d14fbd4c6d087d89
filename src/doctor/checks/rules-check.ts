/**
 * Rules check: the rules in a namespace, ours, Docker's and others', judged by a real query: another program's rule is not a
 * problem as long as queries get through.
 */
import { type Finding, finding } from "../../base/model/finding.ts";
import { readXtables } from "../../kernel/xtables.ts";
import { findCulprits } from "../../container/rules/culprit.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { chainsRedirecting } from "../../container/rules/port-redirects.ts";
import { type InstalledRules, installedRules } from "../../container/rules/installed-rules.ts";
import { type DockerRules, dockerRules, legacyRuleCulprits } from "./docker-rules.ts";
import type { ContainerTarget } from "./container-target.ts";

const DNS_PORT = 53;
/** Nobody waits for an answer: as long as programs hold the lock while many containers start. */
const XTABLES_WAIT_MS = 5_000;

export interface RuleSnapshot {
  readonly own: readonly InstalledRules[];
  /** undefined if there are too many rules to read. */
  readonly docker: readonly DockerRules[] | undefined;
  readonly foreign: readonly string[];
}

export async function readRuleSnapshot(netns: NetNamespace): Promise<RuleSnapshot> {
  const { memory } = netns;
  const tables = await readXtables(netns.within, "ip", XTABLES_WAIT_MS);
  const legacy = legacyRuleCulprits(tables);
  const [redirecting, docker] = await netns.read(() => [
    chainsRedirecting(memory, DNS_PORT).map((chain) => `chain ${chain} redirects port 53`),
    dockerRules(memory, tables),
  ]);
  // legacyRuleCulprits() reports the rules of iptables-legacy one by one, so a list of its tables adds nothing.
  const others = (await findCulprits(netns)).filter((sentence) => !sentence.startsWith("iptables-legacy has rules"));
  return { own: await installedRules(netns), docker, foreign: [...redirecting, ...others, ...legacy] };
}

/** `isResolving`: the container's test queries got their answers. */
export function rulesFindings(
  rules: RuleSnapshot,
  { fact, served, isAnswered }: ContainerTarget,
  isResolving: boolean,
): Finding[] {
  return [
    ownRulesFinding(rules.own, served !== undefined),
    dockerRulesFinding(rules.docker, isAnswered, fact.name),
    foreignRulesFinding(rules.foreign, isResolving, fact.pid),
  ];
}

/** The same where Docker has no resolver, and so no rules. */
export function capturedRulesFindings(
  { own, foreign }: RuleSnapshot,
  { fact, served }: ContainerTarget,
  isResolving: boolean,
): Finding[] {
  return [ownRulesFinding(own, served !== undefined), foreignRulesFinding(foreign, isResolving, fact.pid)];
}

function ownRulesFinding(installed: readonly InstalledRules[], isServed: boolean): Finding {
  const titles = (owner: InstalledRules["owner"]): string =>
    installed
      .filter((one) => one.owner === owner)
      .map(({ title }) => title)
      .join(", ");
  const [owned, left, permanent] = [titles("instance"), titles("orphaned"), titles("permanent")];
  if (left !== "") {
    const detail = `${left}, left by a killed dns11, redirects queries to a port where nothing listens`;
    return finding("rules", "problem", detail, "Run `dns11 doctor --fix` or `dns11 cleanup` to remove it.");
  }
  if (owned !== "") return finding("rules", "ok", `${owned}, owned by a running process`);
  if (permanent !== "") return finding("rules", "ok", `${permanent}, permanent, made in the node`);
  if (!isServed) return finding("rules", "ok", "none");
  return finding(
    "rules",
    "problem",
    "dns11 serves the container, but its rules are missing",
    "Run `dns11 doctor --fix` to install them again.",
  );
}

function dockerRulesFinding(docker: readonly DockerRules[] | undefined, isAnswered: boolean, name: string): Finding {
  if (docker === undefined) {
    return finding(
      "docker-rules",
      "unknown",
      "the nat table of iptables-legacy is too large to read, changes too often, or is locked by other programs",
    );
  }
  if (docker.length > 0) return finding("docker-rules", "ok", docker.join(", "));
  const remedy = `Run docker restart ${name}, or disconnect its network and connect it again: Docker then writes them again.`;
  const cause = "another program (such as a firewall or a VPN client) flushed them, or Docker never wrote them";
  if (isAnswered) {
    const detail = `none: ${cause}; the container will have no DNS when dns11 stops`;
    return finding("docker-rules", "warning", detail, remedy);
  }
  return finding("docker-rules", "problem", `none: ${cause}; queries do not reach Docker's resolver`, remedy);
}

function foreignRulesFinding(foreign: readonly string[], isResolving: boolean, pid: number): Finding {
  if (foreign.length === 0) return finding("foreign-rules", "ok", "none that redirect or drop DNS queries");
  const text = foreign.join("; ");
  if (isResolving) return finding("foreign-rules", "warning", `${text}; queries get through nevertheless`);
  const list = text.includes("iptables-legacy") ? "iptables-legacy-save" : "nft -a list ruleset";
  const remedy = `Change or remove these rules. To list them, run: nsenter -t ${pid} -n ${list}`;
  return finding("foreign-rules", "problem", `${text}; queries do not get through`, remedy);
}
