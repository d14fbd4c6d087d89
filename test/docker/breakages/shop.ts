/**
 * Shop: a small Compose project on a private engine, made by Compose from a file, with dns11 beside it and an upstream server, in which
 * names are made to fail. What users have to find the cause is asked of each: `dns11 failures`, explain and doctor.
 */
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";

import type { Cause, CauseCode } from "../../../src/api/causes.ts";
import type { ControlClient } from "../../../src/api/control-client.ts";
import type { FailureReport, FailuresReport } from "../../../src/api/failures.ts";
import { dataOf, dig, digMany } from "../../support/client/dig.ts";
import { ComposeProject, type ComposeService, runOnHost } from "../../support/engine/compose-project.ts";
import { Container, createNetwork } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import type { CommandResult } from "../../support/program/command.ts";
import { type Dns11, dns11, startDns11 } from "../../support/program/dns11.ts";
import { UiCommand, type UiOptions } from "../../support/program/ui-command.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

const NAME = "shop";

interface ServiceOptions {
  readonly project?: string;
  /** Its last container; by default it has one. */
  readonly number?: number;
  /** Not waited for, because it ends again. */
  readonly isShort?: boolean;
  /** Further keys of the service in the Compose file. */
  readonly keys?: ComposeService;
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
  /** The one whose names are asked for. */
  readonly project: ComposeProject;
  upstream: Upstream;
  readonly #others = new Map<string, ComposeProject>();

  private constructor(engine: Engine, upstream: Upstream, instance: Dns11, project: ComposeProject) {
    this.engine = engine;
    this.upstream = upstream;
    this.instance = instance;
    this.project = project;
  }

  /** `networks` are those that no project has in its file. */
  static async open(networks: readonly string[] = [], args: readonly string[] = []): Promise<Shop> {
    const engine = await startEngine({ resolvConf: "nameserver 127.0.0.1\n" });
    const upstream = await startUpstream(engine);
    for (const name of networks) await createNetwork(engine, name);
    const project = await ComposeProject.create(engine, NAME);
    return new Shop(engine, upstream, await startDns11(engine, { args }), project);
  }

  /** A running container of a service that is written into the file of its project. Networks have their names on the engine. */
  async service(
    service: string,
    networks: readonly string[],
    { project: name = NAME, number = 1, isShort = false, keys = {} }: ServiceOptions = {},
  ): Promise<Container> {
    const project = await this.projectCalled(name);
    const own = `${name}_`;
    for (const each of networks.filter((network) => !network.startsWith(own)))
      project.declare(each, { name: each, external: true });
    const inFile = networks.map((each) => (each.startsWith(own) ? each.slice(own.length) : each));
    project.set(service, {
      ...(inFile.length > 0 && { networks: inFile }),
      ...(number > 1 && { scale: number }),
      ...keys,
    });
    await project.up("--no-deps", service);
    const container = await this.called(`${name}-${service}-${number}`);
    if (!isShort) await this.instance.waitFor(container.name, "attached");
    return container;
  }

  /** A container by its name, as it is now. */
  async called(name: string): Promise<Container> {
    return await Container.of(this.engine, name);
  }

  /** A project beside this one. */
  async projectCalled(name: string): Promise<ComposeProject> {
    if (name === this.project.name) return this.project;
    const other = this.#others.get(name) ?? (await ComposeProject.create(this.engine, name));
    this.#others.set(name, other);
    return other;
  }

  async command(...args: string[]): Promise<CommandResult> {
    return await dns11([...args, "-H", this.engine.host, "--state-dir", this.instance.stateDir]);
  }

  /** Runs a command line as whoever copies it does. */
  async run(line: string): Promise<void> {
    await runOnHost(this.engine, line);
  }

  async ui(options?: UiOptions): Promise<UiCommand> {
    return await UiCommand.start({ host: this.engine.host, stateDir: this.instance.stateDir }, options);
  }

  get client(): ControlClient {
    return this.instance.client;
  }

  async failures(container?: string): Promise<FailuresReport> {
    return await this.client.failures(container === undefined ? {} : { container });
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
      const now = failures.filter(({ earlier }) => earlier === undefined);
      const all = [...now, ...misleading, ...unwatched].map(({ cause }) => cause);
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

  /** Every name of the project resolves in every container of it as `docker compose up` makes it from the file. */
  async assertWhole(): Promise<void> {
    const networks = await this.project.networks();
    const services = [...networks.keys()];
    const networksOf = (service: string): readonly string[] => networks.get(service)?.own ?? [];
    const containers = (await this.project.containers()).filter(({ pid }) => pid > 0);
    const owners = new Map(
      containers.flatMap((each) => each.addresses.map((address) => [address, each.name] as const)),
    );
    const isOf = (service: string, { name }: Container): boolean => name.startsWith(`${this.project.name}-${service}-`);
    for (const client of containers) {
      const service = services.find((each) => isOf(each, client)) ?? "";
      const own = networksOf(networks.get(service)?.of ?? service);
      const wanted = services.map((each) => {
        const isReached = networksOf(each).some((network) => own.includes(network));
        const all = isReached ? containers.filter((container) => isOf(each, container)) : [];
        return all.map(({ name }) => name).join();
      });
      let found: readonly string[] = [];
      const isWhole = async (): Promise<true | undefined> => {
        const replies = await digMany(
          client,
          "127.0.0.11",
          services.map((each) => [each]),
        );
        found = replies.map((reply) =>
          dataOf(reply)
            .map((address) => owners.get(address) ?? address)
            .toSorted()
            .join(),
        );
        return isDeepStrictEqual(found, wanted) ? true : undefined;
      };
      try {
        await waitFor(`${services.join()} in ${client.name}`, isWhole);
      } catch {
        assert.deepEqual(found, wanted, `${services.join()} in ${client.name}`);
      }
    }
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
