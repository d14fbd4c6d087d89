/**
 * EngineAddress: the Docker socket, found as the docker command does: -H, then DOCKER_HOST, then the context from
 * DOCKER_CONTEXT or docker's configuration, then the socket of the user's rootless engine where
 * there is one, then the default socket. Only a unix socket of this machine is accepted, because
 * dns11 must run where the containers' namespaces are.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { Fault } from "../base/lib/fault.ts";
import { ownSocket } from "./own-engine.ts";

const DEFAULT_SOCKET = "/var/run/docker.sock";
/** The source of an address that nobody has named. */
export const BY_DEFAULT = "the default";

export interface EngineAddress {
  readonly socketPath: string;
  /** Where the address comes from, for messages. */
  readonly source: string;
}

export function engineAddress(
  flag: string | undefined,
  env: NodeJS.ProcessEnv,
  user = process.getuid?.() ?? 0,
): EngineAddress {
  if (flag !== undefined && flag !== "") return parse(flag, "-H");
  const host = env["DOCKER_HOST"];
  if (host !== undefined && host !== "") return parse(host, "DOCKER_HOST");
  const folder = env["DOCKER_CONFIG"] || join(env["HOME"] || "/root", ".docker");
  const context = env["DOCKER_CONTEXT"] || readJson(join(folder, "config.json"))?.["currentContext"];
  if (typeof context !== "string" || context === "" || context === "default") {
    return { socketPath: ownSocket(env, user) ?? DEFAULT_SOCKET, source: BY_DEFAULT };
  }
  return parse(contextHost(folder, context), `docker context "${context}"`);
}

function parse(text: string, source: string): EngineAddress {
  if (text.startsWith("unix://")) return { socketPath: text.slice("unix://".length) || DEFAULT_SOCKET, source };
  const scheme = /^([a-z]+):\/\//.exec(text)?.[1] ?? "tcp";
  if (scheme === "npipe" || scheme === "fd") {
    throw new Fault(
      "BAD_ENGINE",
      `Unsupported engine address "${text}" (from ${source}): ${scheme} is not a unix socket`,
      {
        remedy: "Use a unix socket, such as -H unix:///var/run/docker.sock",
      },
    );
  }
  throw new Fault(
    "ENGINE_ELSEWHERE",
    `Unsupported engine address "${text}" (from ${source}): the engine may be on another machine`,
    {
      remedy: `dns11 enters the containers' namespaces, so run it on that machine, with -H unix://${DEFAULT_SOCKET}`,
    },
  );
}

function contextHost(folder: string, context: string): string {
  const digest = createHash("sha256").update(context).digest("hex");
  const meta = readJson(join(folder, "contexts", "meta", digest, "meta.json"));
  const endpoints = meta?.["Endpoints"];
  const docker = isRecord(endpoints) ? endpoints["docker"] : undefined;
  const host = isRecord(docker) ? docker["Host"] : undefined;
  if (typeof host === "string") return host;
  throw new Fault("BAD_ENGINE", `The docker context "${context}" does not exist or has no engine address`, {
    remedy: "List the contexts with: docker context ls. Or set the socket with -H.",
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
