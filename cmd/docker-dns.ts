#!/usr/bin/env node
/**
 * docker-dns: dns11 as a plugin of the docker command (`docker dns status`). docker first requests the plugin's metadata,
 * then calls it with its whole command line. docker's own global flags reach dns11 as the equivalent environment variables.
 */
import { Socket } from "node:net";

import { readBuild } from "./process/build.ts";

const NAME = "dns";
const METADATA = "docker-cli-plugin-metadata";

/** docker's global flags that take a value, and the variable with the same meaning, if there is one. */
const WITH_VALUE: Readonly<Record<string, string | undefined>> = {
  "-H": "DOCKER_HOST",
  "--host": "DOCKER_HOST",
  "-c": "DOCKER_CONTEXT",
  "--context": "DOCKER_CONTEXT",
  "--config": "DOCKER_CONFIG",
  "-l": undefined,
  "--log-level": undefined,
  "--tlscacert": undefined,
  "--tlscert": undefined,
  "--tlskey": undefined,
};

const args = process.argv.slice(2);
if (args[0] === METADATA) {
  const { version } = readBuild();
  const about = {
    SchemaVersion: "0.1.0",
    Vendor: "dns11",
    Version: version,
    ShortDescription: "DNS resolver for containers, outside dockerd",
  };
  process.stdout.write(`${JSON.stringify(about)}\n`);
} else {
  // The script path stays: `run` re-executes this program, which then arrives here without docker's words.
  process.argv = [...process.argv.slice(0, 2), ...withoutDocker(args)];
  const name = process.env["DOCKER_CLI_PLUGIN_SOCKET"] ?? "";
  // Completion ends at once, and somebody waits for it.
  if (name !== "" && process.argv[2] !== "__complete") await endWithDocker(name).catch(() => undefined);
  await import("./dns11.ts");
}

/** A docker that is told to end closes this socket, and waits for its plugin. Where it has a terminal, that signals both. */
async function endWithDocker(name: string): Promise<void> {
  const { connectPluginSocket } = await import("../src/run/plugin-socket.ts");
  new Socket({ fd: connectPluginSocket(name), readable: true, writable: false })
    .on("error", () => undefined)
    .on("close", () => process.kill(process.pid, "SIGTERM"))
    .resume()
    .unref();
}

/** The words for dns11: everything after the plugin's name, with a leading completion or help command kept. */
function withoutDocker(words: readonly string[]): string[] {
  if (words[0] === "__complete" || words[0] === "__completeNoDesc") {
    return ["__complete", ...words.slice(words[1] === NAME ? 2 : 1)];
  }
  if (words[0] === "help") return ["help", ...words.slice(words[1] === NAME ? 2 : 1)];
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? "";
    if (word === NAME) return words.slice(index + 1);
    if (!word.startsWith("-")) break;
    // -H VALUE, -HVALUE, -DH VALUE, --host VALUE, --host=VALUE.
    const [, short, rest] = /^-D*([Hcl])=?(.*)$/s.exec(word) ?? [];
    const [flag = "", joined] = short === undefined ? word.split(/=(.*)/s) : [`-${short}`, rest || undefined];
    if (!Object.hasOwn(WITH_VALUE, flag)) continue;
    const value = joined ?? words[(index += 1)] ?? "";
    const variable = WITH_VALUE[flag];
    if (variable !== undefined) process.env[variable] = value;
    // A context given as a flag takes precedence over DOCKER_HOST in the environment.
    if (variable === "DOCKER_CONTEXT") delete process.env["DOCKER_HOST"];
  }
  return [...words];
}
