/**
 * ComposeProject: a project that the real `docker compose` makes from a real file, as its user does. What the user types runs on the
 * engine's host, where Docker's command and Compose are those of the engine's release.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { stringify } from "yaml";

import { type CommandResult, run, stdoutOf } from "../program/command.ts";
import { Container } from "./container.ts";
import type { Engine } from "./engine.ts";
import { ensureImage } from "./image.ts";

/** A service in the words of a Compose file; its networks by their keys in the file. */
export interface ComposeService {
  readonly networks?: readonly string[] | undefined;
  readonly [key: string]: unknown;
}

const PROJECT_LABEL = "com.docker.compose.project";
const SERVICE_LABEL = "com.docker.compose.service";

export class ComposeProject {
  readonly name: string;
  readonly engine: Engine;
  /** The same path on the engine's host and on the machine. */
  readonly file: string;
  readonly #image: string;
  readonly #services = new Map<string, ComposeService>();
  readonly #networks = new Map<string, unknown>();
  #others: readonly string[] = [];

  private constructor(engine: Engine, name: string, image: string) {
    this.engine = engine;
    this.name = name;
    this.#image = image;
    this.file = join(engine.folder, name, "compose.yaml");
    mkdirSync(dirname(this.file), { recursive: true });
  }

  /** Without a service; the engine is one of a release with Compose. */
  static async create(engine: Engine, name: string): Promise<ComposeProject> {
    return new ComposeProject(engine, name, await ensureImage(engine));
  }

  /** The services in the file. */
  get services(): ReadonlyMap<string, ComposeService> {
    return this.#services;
  }

  /** Writes a service of the file; undefined takes it out. */
  set(service: string, definition: ComposeService | undefined): void {
    if (definition === undefined) this.#services.delete(service);
    else this.#services.set(service, definition);
    for (const key of definition?.networks ?? []) if (!this.#networks.has(key)) this.#networks.set(key, {});
    this.#write();
  }

  /** Changes keys of a service; undefined takes one out. */
  change(service: string, change: ComposeService): void {
    const next = Object.entries({ ...this.#services.get(service), ...change });
    this.set(service, Object.fromEntries(next.filter(([, value]) => value !== undefined)));
  }

  /** Declares a network of the file, whose services name it by its key; undefined takes it out. */
  declare(key: string, definition: unknown): void {
    if (definition === undefined) this.#networks.delete(key);
    else this.#networks.set(key, definition);
    this.#write();
  }

  /** `docker compose up -d`, of all services or of some. */
  async up(...words: readonly string[]): Promise<void> {
    await runOnHost(this.engine, this.line("up", "-d", ...words));
  }

  /** Writes another file beside the first one, which Compose merges into it; its path. */
  add(name: string, content: unknown): string {
    const file = join(dirname(this.file), name);
    writeFileSync(file, stringify(content));
    this.#others = [...this.#others, file];
    return file;
  }

  /** Takes the other files away. */
  keepFirst(): void {
    this.#others = [];
  }

  /** A command line of Compose, as its user types it. */
  line(...words: readonly string[]): string {
    const files = [this.file, ...this.#others].flatMap((file) => ["-f", file]);
    return ["docker", "compose", "-p", this.name, ...files, ...words].join(" ");
  }

  /** The networks of each service, as Compose reads its files, and the service whose network it uses instead. */
  async networks(): Promise<ReadonlyMap<string, { readonly own: readonly string[]; readonly of: string | undefined }>> {
    const text = await runOnHost(this.engine, this.line("--profile '*'", "config", "--format", "json"));
    const { services } = JSON.parse(text) as {
      services: Record<string, { networks?: Record<string, unknown>; network_mode?: string }>;
    };
    return new Map(
      Object.entries(services).map(([name, { networks = {}, network_mode: mode }]) => [
        name,
        {
          own: Object.keys(networks),
          of: mode?.startsWith("service:") === true ? mode.slice("service:".length) : undefined,
        },
      ]),
    );
  }

  /** The containers of a service, or of all, by name. */
  async containers(service?: string): Promise<Container[]> {
    const label = [`${PROJECT_LABEL}=${this.name}`, ...(service === undefined ? [] : [`${SERVICE_LABEL}=${service}`])];
    const query = new URLSearchParams({ all: "true", filters: JSON.stringify({ label }) });
    const list = (await this.engine.api(`/containers/json?${query.toString()}`)) as readonly { readonly Id: string }[];
    const all = await Promise.all(list.map(async ({ Id }) => await Container.of(this.engine, Id)));
    return all.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  #write(): void {
    const services = [...this.#services].map(([service, definition]) => [
      service,
      { image: this.#image, pull_policy: "never", ...definition },
    ]);
    const networks = Object.fromEntries(this.#networks);
    writeFileSync(this.file, stringify({ services: Object.fromEntries(services) as unknown, networks }));
  }
}

/** Runs a command line in a shell on the engine's host, as whoever copies it does; throws with its errors if it fails. */
export async function runOnHost(engine: Engine, line: string): Promise<string> {
  return stdoutOf(await tryOnHost(engine, line), line);
}

export async function tryOnHost({ hostPid, host, folder }: Engine, line: string): Promise<CommandResult> {
  const config = join(folder, "docker-client");
  const env = { DOCKER_HOST: host, DOCKER_CONFIG: config, DOCKER_CONTEXT: undefined, DOCKER_API_VERSION: undefined };
  // In a folder that is there as well.
  const shell = ["sh", "-c", 'cd / && eval "$1"', "sh", line];
  return await run("nsenter", ["--target", String(hostPid), "--mount", "--net", "--", ...shell], { env });
}
