// What the kernel keeps for containers is flushed, as careless scripts and firewalls do it.

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

// Docker's rules go with it, and only come back with another namespace; until then dns11 alone answers.
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
