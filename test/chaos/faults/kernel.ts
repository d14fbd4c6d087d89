// Faults of the kernel's tables: conntrack entries and rules are flushed, as careless scripts and firewalls do.

import { pause } from "../../support/rig/wait.ts";
import { type FaultAction, targetOf } from "../fault-context.ts";

const EVERY_MS = 100;

export const connections: FaultAction = async (context, fault) => {
  const member = targetOf(context, fault);
  await member.exclusively(async () => {
    for (let ms = 0; ms < fault.forMs; ms += EVERY_MS) {
      await member.enter("conntrack", ["--flush"]);
      await pause(EVERY_MS);
    }
  });
  return member.name;
};

export const connectionsOfHost: FaultAction = async ({ engine }) => {
  await engine.enter("conntrack", ["--flush"]);
  return "";
};

// Docker's rules are flushed, too, and return only with a new namespace; until then only dns11 answers.
export const rules: FaultAction = async (context, fault) => {
  const member = targetOf(context, fault);
  await member.exclusively(async () => {
    member.setDockerRules(false);
    await member.enter("nft", ["flush", "ruleset"]);
    await pause(fault.forMs);
    await member.restart("it was being restarted");
  });
  return member.name;
};
