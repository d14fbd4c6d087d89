import type { ContainerStatus } from "../../api/status.ts";
import type { Finding } from "../../base/model/finding.ts";
import type { CheckedContainer, CheckedMachine, InsideContainer } from "../contract.ts";
import { checks } from "./checks.ts";
import { startText } from "./feature.ts";
import { isNode } from "./selection.ts";

export { checks };

export function remark({ node }: ContainerStatus): string | undefined {
  if (node === undefined) return undefined;
  return `${node.isNested === true ? "answers what runs inside, too" : "a KIND node"}: see dns11 kind status`;
}

/** A node is checked as its pods see it, whether dns11, KIND's own rules or nothing serves it. */
export function ownChecks(
  container: CheckedContainer,
  machine: CheckedMachine,
): Promise<readonly Finding[]> | undefined {
  const { fact, status, inside } = container;
  const isMeant = status?.node !== undefined || isNode(fact, [{ kind: "auto" }]);
  return inside !== undefined && isMeant ? checkedInside(container, inside, machine) : undefined;
}

async function checkedInside(
  { fact, networkOf }: CheckedContainer,
  inside: InsideContainer,
  machine: CheckedMachine,
): Promise<readonly Finding[]> {
  // Only the doctor needs these.
  const [{ nodeFactOf }, { checkNode }] = await Promise.all([import("./node-fact.ts"), import("./node-check.ts")]);
  const { resolvConfPath: path } = fact;
  const resolvConf = path === undefined ? undefined : machine.readHostFile(path);
  const node = nodeFactOf(fact, networkOf, undefined);
  return await checkNode({ ...inside, fact: node, resolvConf, start: startText(machine.status) }, inside);
}
