/**
 * Shop: a small Compose project on a private engine, with dns11 beside it and an upstream server, in which names are made to
 * fail. What users have to find the cause is asked of each: `dns11 failures`, explain and doctor.
 */
import assert from "node:assert/strict";
import { dirname } from "node:path";

import type { Cause, CauseCode } from "../../../src/api/causes.ts";
import { ControlClient } from "../../../src/api/control-client.ts";
import type { FailureReport, FailuresReport } from "../../../src/api/failures.ts";
import { locateControl } from "../../../src/api/locate.ts";
import {
  type Container,
  type ContainerOptions,
  type NetworkAttachment,
  createNetwork,
  runContainer,
} from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { dig } from "../../support/client/dig.ts";
import { type CommandResult, run, stdoutOf } from "../../support/program/command.ts";
import { type Dns11, dns11, startDns11 } from "../../support/program/dns11.ts";
import { UiCommand, type UiOptions } from "../../support/program/ui-command.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

export const COMPOSE_FILE = "/srv/shop/compose.yaml";

interface ServiceOptions extends Pick<ContainerOptions, "args" | "command" | "dns" | "labels"> {
  readonly project?: string;
  readonly number?: number;
  /** Not waited for, because it ends again. */
  readonly isShort?: boolean;
}

/** Where a user can read a cause. */
export interface Diagnosis {
  readonly cause: Cause;
  readonly failures: CommandResult;
  readonly explain: CommandResult;
  readonly doctor: CommandResult;
}

export class Shop implements AsyncDisposable {
  readonly engine: Engine;
  readonly instance: Dns11;
  upstream: Upstream;

  private constructor(engine: Engine, upstream: Upstream, instance: Dns11) {
    this.engine = engine;
    this.upstream = upstream;
    this.instance = instance;
  }

  static async open(networks: readonly string[], args: readonly string[] = []): Promise<Shop> {
    const engine = await startEngine({ suite: "forky", resolvConf: "nameserver 127.0.0.1\n" });
    const upstream = await startUpstream(engine);
    for (const name of networks) await createNetwork(engine, name);
    return new Shop(engine, upstream, await startDns11(engine, { args }));
  }

  /** A running container as Compose creates it: its labels, and its name and service as aliases on each network. */
  async service(
    service: string,
    networks: readonly string[],
    { project = "shop", number = 1, isShort = false, labels, ...options }: ServiceOptions = {},
  ): Promise<Container> {
    const container = await runContainer(this.engine, {
      ...options,
      name: `${project}-${service}-${number}`,
      networks: networks.map((name): NetworkAttachment => ({
        name,
        aliases: [`${project}-${service}-${number}`, service],
      })),
      labels: {
        ...labels,
        "com.docker.compose.project": project,
        "com.docker.compose.service": service,
        "com.docker.compose.project.config_files": COMPOSE_FILE,
        "com.docker.compose.project.working_dir": dirname(COMPOSE_FILE),
        "com.docker.compose.config-hash": `${project} ${service}`,
      },
    });
    if (!isShort) await this.instance.waitFor(container.name, "attached");
    return container;
  }

  async command(...args: string[]): Promise<CommandResult> {
    return await dns11([...args, "-H", this.engine.host, "--state-dir", this.instance.stateDir]);
  }

  /** Runs a command line as whoever copies it does. */
  async run(line: string): Promise<void> {
    const env = { DOCKER_HOST: this.engine.host, DOCKER_CONTEXT: undefined, DOCKER_API_VERSION: undefined };
    stdoutOf(await run("sh", ["-c", line], { env }), line);
  }

  async ui(options?: UiOptions): Promise<UiCommand> {
    return await UiCommand.start({ host: this.engine.host, stateDir: this.instance.stateDir }, options);
  }

  async client(): Promise<ControlClient> {
    return new ControlClient(await locateControl(this.instance.stateDir, this.engine.host));
  }

  async failures(container?: string): Promise<FailuresReport> {
    return await (await this.client()).failures(container === undefined ? {} : { container });
  }

  /** The failure of a name once it has this cause. */
  async failureOf(name: string, code: CauseCode): Promise<FailureReport> {
    return await this.#eventually(`${name} to fail for ${code}`, ({ failures }) =>
      failures.find((each) => each.name === name && each.cause?.code === code),
    );
  }

  /** A cause in a container, once it is known, whether queries fail, mislead or are not seen. `act` is repeated until then. */
  async causeIn(container: string, code: CauseCode, act: () => Promise<unknown>): Promise<Cause> {
    const find = ({ failures, misleading, unwatched }: FailuresReport): Cause | undefined => {
      const all = [...failures, ...misleading, ...unwatched].map(({ cause }) => cause);
      return all.find((each) => each?.code === code) ?? undefined;
    };
    return await this.#eventually(`${code} in ${container}`, find, { container, act });
  }

  /** What each command says about the cause. */
  async diagnose(container: string, name: string, cause: Cause): Promise<Diagnosis> {
    const [failures, explain, doctor] = await Promise.all([
      this.command("failures", container, "--all"),
      this.command("explain", name, "--in", container),
      this.command("doctor", container),
    ]);
    return { cause, failures, explain, doctor };
  }

  async resolves(from: Container, name: string): Promise<void> {
    await waitFor(`${name} to resolve`, async () => ((await dig(from, name)).answer.length > 0 ? true : undefined));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.instance[Symbol.asyncDispose]();
    await this.upstream[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
  }

  async #eventually<T>(
    what: string,
    find: (report: FailuresReport) => T | undefined,
    { container, act }: { container?: string; act?: () => Promise<unknown> } = {},
  ): Promise<T> {
    let last: unknown;
    const look = async (): Promise<T | undefined> => {
      await act?.();
      const report = await this.failures(container);
      last = report;
      return find(report);
    };
    try {
      return await waitFor(what, look);
    } catch (error) {
      throw new Error(JSON.stringify(last), { cause: error });
    }
  }
}

/** Seconds pass between two commands. */
export function withoutAge(text = ""): string {
  return text.replaceAll(/\d+(?: s|s| min|m) ago/g, "");
}

/** A command's output wraps where the terminal ends. */
export function unwrapped(text: string): string {
  return withoutAge(text).replaceAll(/\s+/g, " ");
}

/** The cause is in the output of a command, and its fix if it has one. */
export function assertShows(text: string, { sentence, fix, lastingFix }: Cause): void {
  const shown = unwrapped(text);
  assert.ok(shown.includes(unwrapped(sentence)), text);
  if (fix !== null) assert.ok(shown.includes(fix), text);
  if (lastingFix !== null) assert.ok(shown.includes(lastingFix.key), text);
}
