/**
 * EngineAddress: the Docker socket, found as the docker command does: -H, then DOCKER_HOST, then the context from
 * DOCKER_CONTEXT or docker's configuration, then the socket of the user's rootless engine where
 * there is one, then the default socket. Only a unix socket of this machine is accepted, because
 * dns11 must run where the containers' namespaces are.
 */
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../base/lib/fault.ts";

const DEFAULT_SOCKET = "/var/run/docker.sock";
/** The source of an address that nobody has named. */
export const BY_DEFAULT = "the default";

interface EngineAddress {
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

const ROOT = 0;

/**
 * The socket of the user's own rootless engine, in the user's runtime directory; undefined where there is none. The state of the
 * dns11 that serves it is there, too: that dns11 has the rights of this user only.
 */
function ownSocket(env: NodeJS.ProcessEnv, user: number): string | undefined {
  const folder = runtimeFolder(env, user);
  const path = folder === undefined ? undefined : join(folder, "docker.sock");
  return path !== undefined && ownerOf(path) === user ? path : undefined;
}

/** Whether it is the user's own engine; one that is away by the place of its socket. */
export function isOwnEngine(socketPath: string, env: NodeJS.ProcessEnv, user: number): boolean {
  if (user === ROOT) return false;
  const folder = runtimeFolder(env, user);
  const owner = ownerOf(socketPath);
  return owner === undefined ? folder !== undefined && socketPath.startsWith(`${folder}/`) : owner === user;
}

/** The owner of a file; undefined if it does not exist, or is hidden from this user. */
export function ownerOf(path: string): number | undefined {
  try {
    return statSync(path).uid;
  } catch {
    return undefined;
  }
}

/** The folder in which a user's programs keep their sockets; undefined for root. */
export function runtimeFolder(env: NodeJS.ProcessEnv, user: number): string | undefined {
  const folder = env["XDG_RUNTIME_DIR"];
  return user === ROOT || folder === undefined || !folder.startsWith("/") ? undefined : folder;
}
