/**
 * Rules check: whose rules stand in a namespace, ours, Docker's and others', judged by what a real query finds: a rule
 * that others have is no problem as long as queries come through.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { findCulprits } from "../../container/rules/culprit.ts";
import { chainsRedirecting } from "../../container/rules/port-redirects.ts";
import { type InstalledRules, installedRules } from "../../container/rules/installed-rules.ts";
import { type DockerRules, dockerRules, legacyRuleCulprits } from "./docker-rules.ts";
import type { ContainerTarget } from "./container-target.ts";

const DNS_PORT = 53;
const RESTART = "Start the container anew, or take it off its network and back: then Docker writes them again.";

export interface RuleSnapshot {
  readonly standing: readonly InstalledRules[];
  /** undefined where there are too many to tell. */
  readonly docker: readonly DockerRules[] | undefined;
  readonly foreign: readonly string[];
}

/** To be called inside the namespace. */
export function readRuleSnapshot(memory: NetlinkMemory): RuleSnapshot {
  const leading = chainsRedirecting(memory, DNS_PORT).map((chain) => `chain ${chain} leads port 53 elsewhere`);
  const legacy = legacyRuleCulprits();
  // The older iptables' rules are told one by one, so that its tables' names say nothing more.
  const others = findCulprits(memory).filter((sentence) => !sentence.startsWith("iptables-legacy has rules"));
  return { standing: installedRules(memory), docker: dockerRules(memory), foreign: [...leading, ...others, ...legacy] };
}

/** Whether queries come through, by what was asked. */
export function rulesFindings(
  seen: RuleSnapshot,
  { served, isAnswered }: ContainerTarget,
  comesThrough: boolean,
): Finding[] {
  return [
    ownRulesFinding(seen.standing, served !== undefined),
    dockerRulesFinding(seen.docker, isAnswered),
    foreignRulesFinding(seen.foreign, comesThrough),
  ];
}

function ownRulesFinding(standing: readonly InstalledRules[], isServed: boolean): Finding {
  const titles = (holder: InstalledRules["owner"]): string =>
    standing
      .filter((one) => one.owner === holder)
      .map(({ title }) => title)
      .join(", ");
  const [held, left, staying] = [titles("instance"), titles("nobody"), titles("stays")];
  if (left !== "") {
    const detail = `${left}, held by nobody: a killed dns11 left that, and it leads queries to nobody`;
    return finding("rules", "problem", detail, "`dns11 doctor --fix` or `dns11 cleanup` removes it.");
  }
  if (held !== "") return finding("rules", "ok", `${held}, held by a running process`);
  if (staying !== "") return finding("rules", "ok", `${staying}, made in the node, to stay`);
  if (!isServed) return finding("rules", "ok", "none");
  return finding("rules", "problem", "dns11 serves here, but its rules are not there", "Run `dns11 doctor --fix`.");
}

function dockerRulesFinding(docker: readonly DockerRules[] | undefined, isAnswered: boolean): Finding {
  if (docker === undefined) {
    return finding("docker-rules", "unknown", "iptables-legacy's table nat is too large, or changes too often");
  }
  if (docker.length > 0) return finding("docker-rules", "ok", docker.join(", "));
  const cause = "somebody flushed them (a firewall, a VPN client), or this container never had any";
  if (isAnswered) {
    const detail = `none: ${cause}. dns11 answers without them; when it ends, nobody will`;
    return finding("docker-rules", "warning", detail, RESTART);
  }
  return finding("docker-rules", "problem", `none: ${cause}. Nobody leads queries to Docker's resolver`, RESTART);
}

function foreignRulesFinding(foreign: readonly string[], comesThrough: boolean): Finding {
  if (foreign.length === 0) return finding("foreign-rules", "ok", "none that translate or drop what is asked");
  const text = foreign.join("; ");
  if (comesThrough) return finding("foreign-rules", "warning", `${text}. Queries come through all the same`);
  return finding("foreign-rules", "problem", `${text}. Queries do not come through`, "Change or remove those rules.");
}
