/**
 * Owns what a container asks of the engine it belongs to, be that an engine on the machine or one inside a container:
 * the docker command, and programs run where the process ids that this engine reports are true.
 */
import { dirname, join } from "node:path";
import type { CommandOptions, CommandResult } from "../program/command.ts";
import { run, stdoutOf } from "../program/command.ts";

export interface DockerHost {
  /** What the docker command printed, without the last newline; throws with the command's words when it fails. */
  docker(...args: string[]): Promise<string>;
  dockerCommand(args: readonly string[], options?: CommandOptions): Promise<CommandResult>;
  /** What the engine's API tells at this path. Looking so takes a tenth of what the docker command takes. */
  api(path: string): Promise<unknown>;
  exec(command: string, args?: readonly string[], options?: CommandOptions): Promise<CommandResult>;
}

/** The machine's docker command against one socket. */
export class DockerClient {
  readonly socketPath: string;

  constructor(socketPath: string) {
    this.socketPath = socketPath;
  }

  async run(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
    // The tester's own docker settings must not reach in.
    const config = join(dirname(this.socketPath), "docker-client");
    const env = { ...options.env, DOCKER_CONFIG: config, DOCKER_CONTEXT: undefined, DOCKER_API_VERSION: undefined };
    return await run("docker", ["-H", `unix://${this.socketPath}`, ...args], { ...options, env });
  }

  async check(args: readonly string[], options: CommandOptions = {}): Promise<string> {
    return stdoutOf(await this.run(args, options), `docker ${args.join(" ")}`).trimEnd();
  }
}
