// Images whose authors have the engine say more than anybody wants to read: each list, inspect and event of their containers
// has all of it. DNS11_LABEL_MB=150 makes them larger than every test run has time for.

import { loadImage, type ImageConfig } from "../support/engine/image.ts";
import { type Attack, type Rig } from "./rig.ts";

const BYTES = Number(process.env["DNS11_LABEL_MB"] ?? 20) * 1e6;
const CONTAINERS = 2;

// One long label, very many short ones, escapes, and environment.
const CONFIGS: Readonly<Record<string, ImageConfig>> = {
  "one long label": { Labels: { "io.dns11.names": "x".repeat(BYTES) } },
  "very many labels": {
    Labels: Object.fromEntries(Array.from({ length: BYTES / 150 }, (_, index) => [`key${index}`, "y".repeat(130)])),
  },
  "labels of escapes": { Labels: { a: '"'.repeat(BYTES / 4), ["\\".repeat(BYTES / 4)]: "" } },
  // The kernel starts no program with over 2 MB.
  "a long environment": {
    Env: ["KIND_DNS_SEARCH=a.test", ...Array.from({ length: 14 }, (_, index) => `KEY${index}=${"z".repeat(120_000)}`)],
  },
};

async function startAll(rig: Rig, title: string, config: ImageConfig): Promise<void> {
  const image = await loadImage(rig.engine, `large-${title.replaceAll(" ", "-")}`, config);
  const names = Array.from({ length: CONTAINERS }, (_, index) => `large${index}`);
  try {
    for (const name of names) {
      await rig.engine.docker(
        "run",
        "--detach",
        `--name=${name}`,
        "--network=attackers",
        "--entrypoint=",
        image,
        "sleep",
        "600",
      );
    }
    for (const name of names) await rig.instance.waitFor(name, "attached");
  } finally {
    for (const name of names) await rig.engine.dockerCommand(["rm", "--force", "--volumes", name]);
    await rig.engine.dockerCommand(["rmi", "--force", image]);
  }
}

export const IMAGES: readonly Attack[] = Object.entries(CONFIGS).map(([title, config]) => ({
  title: `containers of an image with ${title}`,
  act: async (rig) => await startAll(rig, title, config),
}));
