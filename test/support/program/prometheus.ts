/** A Prometheus of a test in a network namespace, which scrapes dns11 there. It is a program, not the machine's service. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { type CommandResult, SYSTEM_PATH } from "./command.ts";
import { inNetns } from "../rig/netns.ts";
import { hold, release, unrefChild } from "../rig/reaper.ts";
import { inTime } from "../rig/wait.ts";

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

export interface AlertState {
  readonly name: string;
  readonly health: string;
  readonly state: string;
}

interface Place {
  readonly netnsPath: string;
  readonly enter: (command: string, args: readonly string[]) => Promise<CommandResult>;
}

/** The namespace is the test's own, so that the usual port is free. */
const ADDRESS = "127.0.0.1:9090";
/** Fetches each path in the namespace and prints the bodies as one JSON list. */
const FETCH = `
const paths = JSON.parse(process.argv[1]);
const bodies = [];
for (const path of paths) bodies.push(await (await fetch("http://${ADDRESS}" + path)).json());
console.log(JSON.stringify(bodies));
`;
let started = 0;

export class Prometheus implements AsyncDisposable {
  readonly #place: Place;
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #id: string;

  /** Scrapes the target as the job dns11, and evaluates the rules, every second. */
  constructor(place: Place, target: string, rules: string) {
    this.#place = place;
    this.#folder = mkdtempSync(join(tmpdir(), "d11-prometheus-"));
    this.#id = `d11-${process.pid}-prometheus-${(started += 1)}`;
    hold({ id: this.#id, folder: this.#folder });
    const config = {
      global: { scrape_interval: "1s", evaluation_interval: "1s" },
      rule_files: [rules],
      scrape_configs: [{ job_name: "dns11", static_configs: [{ targets: [target] }] }],
    };
    // JSON is YAML, too.
    writeFileSync(join(this.#folder, "prometheus.yml"), JSON.stringify(config));
    const [command = "", ...args] = inNetns(place.netnsPath, "prometheus", [
      `--config.file=${join(this.#folder, "prometheus.yml")}`,
      `--storage.tsdb.path=${join(this.#folder, "data")}`,
      `--web.listen-address=${ADDRESS}`,
    ]);
    this.#child = spawn(command, args, { stdio: "ignore", env: { PATH: SYSTEM_PATH } });
    unrefChild(this.#child);
  }

  /** The result of each expression; throws with the error of the first that Prometheus refuses. */
  async query(expressions: readonly string[]): Promise<Sample[][]> {
    const bodies = await this.#fetch(expressions.map((each) => `/api/v1/query?query=${encodeURIComponent(each)}`));
    return bodies.map((body, at) => {
      const { status, error, data } = body as { status: string; error?: string; data: { result: Sample[] } };
      if (status !== "success") throw new Error(`${expressions[at]}: ${error}`);
      return data.result;
    });
  }

  async alerts(): Promise<AlertState[]> {
    const [body] = (await this.#fetch(["/api/v1/rules?type=alert"])) as [
      { data: { groups: { rules: AlertState[] }[] } },
    ];
    return body.data.groups.flatMap(({ rules }) => rules);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, "close");
      this.#child.kill("SIGKILL");
      await inTime(ended, "Prometheus to end");
    }
    rmSync(this.#folder, { recursive: true, force: true });
    release({ id: this.#id });
  }

  async #fetch(paths: readonly string[]): Promise<unknown[]> {
    const args = ["--input-type=module", "-e", FETCH, JSON.stringify(paths)];
    const { code, stdout, stderr } = await this.#place.enter(process.execPath, args);
    if (code !== 0) throw new Error(stderr);
    return JSON.parse(stdout) as unknown[];
  }
}
