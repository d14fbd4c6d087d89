// Ordinary changes of containers and networks, only more often.

import { ensureImage } from "../../support/engine/image.ts";
import { pause } from "../../support/rig/wait.ts";
import { type FaultAction, targetOf } from "../fault-context.ts";

const SHORT_LIVED = 3;

let made = 0;

export const restart: FaultAction = async (context, fault) => {
  const member = targetOf(context, fault);
  await member.exclusively(async () => await member.restart("it was being restarted"));
  return member.name;
};

export const replace: FaultAction = async (context, fault) => {
  const member = targetOf(context, fault);
  await member.exclusively(async () => await member.replace());
  return member.name;
};

export const join: FaultAction = async (context, fault) => {
  const member = targetOf(context, fault);
  await member.exclusively(async () => await member.visit("n2", fault.forMs));
  return member.name;
};

// They are not probed, and the engine may be down: errors are ignored.
export const shortLived: FaultAction = async ({ engine }, { forMs }) => {
  const image = await ensureImage(engine);
  const names = Array.from({ length: SHORT_LIVED }, () => `short-lived-${(made += 1)}`);
  const started = await Promise.all(
    names.map(
      async (name) => await engine.dockerCommand(["run", "--detach", "--network", "n1", "--name", name, image]),
    ),
  );
  await pause(forMs);
  await engine.dockerCommand(["rm", "--force", ...names]);
  return `${started.filter(({ code }) => code === 0).length} containers`;
};

export const network: FaultAction = async ({ engine, networks }, { forMs }) => {
  const image = await ensureImage(engine);
  const name = `short-lived-network-${(made += 1)}`;
  const docker = async (...words: string[]): Promise<boolean> => (await engine.dockerCommand(words)).code === 0;
  const results = [await networks.exclusively(async () => await docker("network", "create", name))];
  results.push(await docker("run", "--detach", "--network", name, "--name", name, image));
  await pause(forMs);
  results.push(await docker("rm", "--force", name));
  results.push(await networks.exclusively(async () => await docker("network", "rm", name)));
  return results.every(Boolean) ? "" : "some docker commands failed";
};
