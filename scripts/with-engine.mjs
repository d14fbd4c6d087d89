// @ts-check
/**
 * Runs a command with a private Docker engine that is removed afterwards: node scripts/with-engine.mjs COMMAND
 * [ARGUMENT ...]. The command gets the engine in DOCKER_HOST, an image with busybox in DNS11_IMAGE, and the engine's
 * network namespace in DNS11_ENGINE_NETNS.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

import { startEngine } from "../dist/test/support/engine/engine.js";
import { ensureImage } from "../dist/test/support/engine/image.js";
import { startUpstream } from "../dist/test/support/servers/upstream.js";

const [command, ...args] = process.argv.slice(2);
if (command === undefined) {
  console.error("usage: node scripts/with-engine.mjs COMMAND [ARGUMENT ...]");
  process.exit(2);
}
const engine = await startEngine();
// An upstream for the engine's host; without one, the doctor would report it as unreachable.
const upstream = await startUpstream(engine);
try {
  const image = await ensureImage(engine);
  const child = spawn(command, args, {
    stdio: "inherit",
    env: {
      ...process.env,
      DOCKER_HOST: engine.host,
      DOCKER_CONFIG: join(engine.folder, "docker-client"),
      DNS11_IMAGE: image,
      DNS11_ENGINE_NETNS: engine.netnsPath,
    },
  });
  const [code, signal] = await once(child, "close");
  process.exitCode = code ?? 1;
  if (signal !== null) console.error(`with-engine: ${command} was killed by ${signal}`);
} finally {
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
}
