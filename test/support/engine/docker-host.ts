/**
 * Interface of an engine to its containers, be it an engine on the machine or inside a container: the docker command,
 * and programs run where the engine's process ids are valid.
 */
import { dirname, join } from "node:path";
import type { CommandOptions, CommandResult } from "../program/command.ts";
import { run, stdoutOf } from "../program/command.ts";
import { deleteAt, getJson, postJson } from "../program/unix-http.ts";

export interface DockerHost {
  /** Output of the docker command without the trailing newline; throws with its error output if it fails. */
  docker(...args: string[]): Promise<string>;
  dockerCommand(args: readonly string[], options?: CommandOptions): Promise<CommandResult>;
  /** The engine's API response for this path. It takes a tenth of the time of the docker command. */
  api(path: string): Promise<unknown>;
  /** Posts JSON, or an archive, to the engine's API at this path, and returns the response. */
  post(path: string, json?: unknown): Promise<unknown>;
  /** Deletes what the engine's API has at this path. */
  delete(path: string): Promise<void>;
  exec(command: string, args?: readonly string[], options?: CommandOptions): Promise<CommandResult>;
}

/** An engine at a socket of this machine, with the machine's docker command. */
export class EngineAtSocket implements DockerHost {
  readonly socketPath: string;

  constructor(socketPath: string) {
    this.socketPath = socketPath;
  }

  async docker(...args: string[]): Promise<string> {
    return stdoutOf(await this.dockerCommand(args), `docker ${args.join(" ")}`).trimEnd();
  }

  async dockerCommand(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
    // Ignore the docker settings of the person who runs the tests.
    const config = join(dirname(this.socketPath), "docker-client");
    const env = { ...options.env, DOCKER_CONFIG: config, DOCKER_CONTEXT: undefined, DOCKER_API_VERSION: undefined };
    return await run("docker", ["-H", `unix://${this.socketPath}`, ...args], { ...options, env });
  }

  async api(path: string): Promise<unknown> {
    return await getJson(this.socketPath, path);
  }

  async post(path: string, json: unknown = {}): Promise<unknown> {
    return await postJson(this.socketPath, path, json);
  }

  async delete(path: string): Promise<void> {
    await deleteAt(this.socketPath, path);
  }

  /** Runs a program on the machine, whose process ids are the engine's. */
  async exec(command: string, args: readonly string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
    return await run(command, args, options);
  }
}
