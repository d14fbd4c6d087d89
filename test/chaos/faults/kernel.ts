// What the kernel keeps for containers is flushed, as careless scripts and firewalls do it.

import { pause } from "../../support/rig/wait.ts";
import { type Act, targetOf } from "../fault-context.ts";

const EVERY_MS = 100;

export const connections: Act = async (scene, fault) => {
  const member = targetOf(scene, fault);
  await member.exclusively(async () => {
    for (let ms = 0; ms < fault.forMs; ms += EVERY_MS) {
      await member.enter("conntrack", ["--flush"]);
      await pause(EVERY_MS);
    }
  });
  return member.name;
};

export const connectionsOfHost: Act = async ({ engine }) => {
  await engine.enter("conntrack", ["--flush"]);
  return "";
};

// Docker's rules go with it, and only come back with another namespace; until then dns11 alone answers.
export const rules: Act = async (scene, fault) => {
  const member = targetOf(scene, fault);
  await member.exclusively(async () => {
    member.setDockerRules(false);
    await member.enter("nft", ["flush", "ruleset"]);
    await pause(fault.forMs);
    await member.restart("it was being restarted");
  });
  return member.name;
};
