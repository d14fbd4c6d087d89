#!/usr/bin/env node
/**
 * docker-dns: dns11 as a plugin of the docker command, `docker dns status` and so on. docker asks it who it is, and calls it
 * with everything that stood on its own command line; what docker's own flags say reaches dns11 as the variables that mean
 * the same.
 */
import { readBuild } from "./build.ts";

const NAME = "dns";
const METADATA = "docker-cli-plugin-metadata";

/** docker's own flags that take a value, and the variable that says the same to dns11. */
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
    ShortDescription: "The resolver of 127.0.0.11, outside dockerd",
  };
  process.stdout.write(`${JSON.stringify(about)}\n`);
} else {
  // Its own path stays: a run becomes the same program anew, and comes here again, without docker's words.
  process.argv = [...process.argv.slice(0, 2), ...withoutDocker(args)];
  await import("./dns11.ts");
}

/** What is left for dns11: everything behind the plugin's name, and the question of a shell before it. */
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
    // What was said beside it counts more than what the environment says of another kind.
    if (variable === "DOCKER_CONTEXT") delete process.env["DOCKER_HOST"];
  }
  return [...words];
}
