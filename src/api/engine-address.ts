/**
 * Where the engine is, read as the docker command line reads it: -H, then DOCKER_HOST, then the context that
 * DOCKER_CONTEXT or docker's own settings name, then the default socket. Only a unix socket of this machine will do: the
 * namespaces to be served must be here.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { Fault } from "../base/lib/fault.ts";

const DEFAULT_SOCKET = "/var/run/docker.sock";

export interface EngineAddress {
  readonly socketPath: string;
  /** Where it was read, for messages. */
  readonly source: string;
}

export function engineAddress(flag: string | undefined, env: NodeJS.ProcessEnv): EngineAddress {
  if (flag !== undefined && flag !== "") return parse(flag, "-H");
  const host = env["DOCKER_HOST"];
  if (host !== undefined && host !== "") return parse(host, "DOCKER_HOST");
  const folder = env["DOCKER_CONFIG"] || join(env["HOME"] || "/root", ".docker");
  const context = env["DOCKER_CONTEXT"] || readJson(join(folder, "config.json"))?.["currentContext"];
  if (typeof context !== "string" || context === "" || context === "default") {
    return { socketPath: DEFAULT_SOCKET, source: "the default" };
  }
  return parse(contextHost(folder, context), `docker context "${context}"`);
}

function parse(text: string, source: string): EngineAddress {
  if (text.startsWith("unix://")) return { socketPath: text.slice("unix://".length) || DEFAULT_SOCKET, source };
  const scheme = /^([a-z]+):\/\//.exec(text)?.[1] ?? "tcp";
  if (scheme === "npipe" || scheme === "fd") {
    throw new Fault(
      "BAD_ENGINE",
      `Cannot use the engine address "${text}" of ${source}: ${scheme} is not a unix socket`,
      {
        remedy: "Name the engine's socket: -H unix:///var/run/docker.sock",
      },
    );
  }
  throw new Fault("ENGINE_ELSEWHERE", `The engine of ${source}, "${text}", may be on another machine`, {
    remedy: `dns11 enters the containers' namespaces, so it runs where they are: on that machine, with -H unix://${DEFAULT_SOCKET}`,
  });
}

function contextHost(folder: string, context: string): string {
  const digest = createHash("sha256").update(context).digest("hex");
  const meta = readJson(join(folder, "contexts", "meta", digest, "meta.json"));
  const endpoints = meta?.["Endpoints"];
  const docker = isRecord(endpoints) ? endpoints["docker"] : undefined;
  const host = isRecord(docker) ? docker["Host"] : undefined;
  if (typeof host === "string") return host;
  throw new Fault("BAD_ENGINE", `The docker context "${context}" is not there, or names no engine`, {
    remedy: "See `docker context ls`, or name the engine with -H.",
  });
}

function readJson(path: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
