/**
 * LiveLab: the faults, answers and recordings of one test, for some containers. They are in force when a call returns, and gone when
 * the lab is closed, or the process ends in any way.
 *
 *   await using lab = await dns.lab({ project: "shop" });
 *   await lab.fault("db", { servfail: { count: 2 } });
 */
import { setTimeout as sleep } from "node:timers/promises";

import { bareName } from "../../base/dns/name.ts";
import { nearest } from "../../base/lib/nearest.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import type { ControlClient } from "../control-client.ts";
import type { LeaseConnection } from "../lease-connection.ts";
import type { LeaseScope, RecordedQuery, RuleRequest, RuleUseReport } from "../lease.ts";
import type { QueryReport } from "../queries.ts";
import type { ContainerStatus } from "../status.ts";
import type { AskedOptions, Lab, LabReport, LabRule, LabTape } from "./test-lab.ts";
import {
  type FaultOptions,
  type LabAnswer,
  type RuleLimits,
  answerRule,
  faultRule,
  readTimeout,
  refuseUnknownOptions,
} from "./rule-options.ts";
import { MISSING, type Missing, type TapeContent, replayRules, tapeOf } from "./tape.ts";

const ASKED_MS = 2_000;
const RETRY_MS = 50;
const LAST_QUERIES = 1_000;
const SHOWN_MAX = 20;
/** The server sends what is recorded so often. */
const FLUSH_MS = 150;

export class LiveLab implements Lab {
  readonly #client: ControlClient;
  readonly #lease: LeaseConnection;
  readonly #scope: LeaseScope;
  readonly #sinceMs = Date.now();

  constructor(client: ControlClient, lease: LeaseConnection, scope: LeaseScope) {
    this.#client = client;
    this.#lease = lease;
    this.#scope = scope;
  }

  /** Resolves when the lab has ended, also because dns11 was stopped or replaced. */
  get ended(): Promise<void> {
    return this.#lease.ended;
  }

  /** Has queries for a name, or a pattern of names, fail. */
  async fault(name: string, fault: FaultOptions): Promise<LabRule> {
    return await this.#add(faultRule(name, fault));
  }

  /** Has queries for a name answered so. */
  async answer(name: string, answer: LabAnswer, limits?: RuleLimits): Promise<LabRule> {
    return await this.#add(answerRule(name, answer, limits));
  }

  /** Two containers, or more, get different answers: a service or container, and its answer. */
  async split(name: string, answers: Readonly<Record<string, LabAnswer>>): Promise<readonly LabRule[]> {
    const rules: LabRule[] = [];
    for (const [container, answer] of Object.entries(answers)) {
      rules.push(await this.#add(answerRule(name, answer, { in: { container } })));
    }
    return rules;
  }

  /** Nothing but these names resolves. Other names fail at once, and `report` lists them. */
  async only(names: readonly string[], options: Pick<RuleLimits, "in"> = {}): Promise<LabRule> {
    refuseUnknownOptions("only", options, ["in"]);
    return await this.#add({ action: "only", ...(names.length > 0 && { names }), ...options });
  }

  /**
   * Waits until a name is queried, and returns the query. Queries since the lab was opened count. Otherwise it fails with the
   * code NOT_ASKED, and says what was asked instead.
   */
  async asked(name: string, options: AskedOptions = {}): Promise<QueryReport> {
    refuseUnknownOptions("asked", options, ["by", "type", "within"]);
    const { by, type, within = ASKED_MS } = options;
    const limitMs = readTimeout("asked", within);
    const { container, project, service } = this.#scope;
    const isChosenOtherwise = this.#scope.network !== undefined || this.#scope.label !== undefined;
    if (isChosenOtherwise && (by ?? container ?? project ?? service) === undefined)
      throw new Fault("BAD_OPTION", 'In a lab for a network or a label, asked needs the container: add "by"');
    const wanted = bareName(name);
    const seen = new Map<string, number>();
    for (const endMs = performance.now() + limitMs; ;) {
      const queries = await this.#queries(by);
      const found = queries.find(
        (query) =>
          query.name !== null &&
          bareName(query.name) === wanted &&
          (type === undefined || query.type === type.toUpperCase()),
      );
      if (found !== undefined) return found;
      seen.clear();
      for (const each of queries) {
        const text = `${each.name ?? "(hidden)"} ${each.type ?? ""}${by === undefined ? ` by ${each.container}` : ""}`;
        seen.set(text, (seen.get(text) ?? 0) + 1);
      }
      if (performance.now() + RETRY_MS > endMs) break;
      await sleep(RETRY_MS);
    }
    const shown = [...seen]
      .slice(0, SHOWN_MAX)
      .map(([text, count]) => (count === 1 ? text : `${text} (${count} times)`));
    const more = seen.size - shown.length;
    const instead = seen.size === 0 ? "nothing" : `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
    const who = by ?? "any container of the lab";
    const absent = await this.#absentText(by);
    if (absent !== undefined)
      throw new Fault("NOT_ASKED", `"${name}" was not queried within ${limitMs} ms: ${absent}`, {
        remedy: "Start it before, or correct the name.",
      });
    throw new Fault(
      "NOT_ASKED",
      `"${name}"${type === undefined ? "" : ` ${type}`} was not queried by ${who} within ${limitMs} ms; queried was: ${instead}`,
      { remedy: "A program may keep what it was answered before: restart it, or ask for another name." },
    );
  }

  /** Records what the containers ask and are answered from now on. */
  async record(options: Pick<RuleLimits, "in"> = {}): Promise<LabTape> {
    refuseUnknownOptions("record", options, ["in"]);
    const queries: RecordedQuery[] = [];
    let missed = 0;
    const reply = await this.#lease.send({ record: { in: { ...this.#scope, ...options.in } } });
    this.#lease.onRecorded = (more, lost) => {
      queries.push(...more);
      missed += lost;
    };
    const id = "id" in reply ? reply.id : 0;
    let isOn = true;
    return {
      queries,
      get missed() {
        return missed;
      },
      save: async (path) => {
        if (isOn) await sleep(FLUSH_MS);
        const { writeTape } = await import("./tape-file.ts");
        writeTape(path, tapeOf(queries));
      },
      stop: async () => {
        if (!isOn) return;
        isOn = false;
        await sleep(FLUSH_MS);
        await this.#lease.send({ remove: id });
      },
    };
  }

  /** Answers from a tape alone. Names that were live when it was recorded are answered as always. */
  async replay(tape: string | TapeContent, options: { readonly missing?: Missing } = {}): Promise<readonly LabRule[]> {
    refuseUnknownOptions("replay", options, ["missing"]);
    const { missing = "nxdomain" } = options;
    if (!MISSING.includes(missing))
      throw new Fault("BAD_OPTION", `Invalid option missing of replay: use one of ${MISSING.join(", ")}`);
    const content = typeof tape === "string" ? (await import("./tape-file.ts")).readTape(tape) : tape;
    return await Promise.all(replayRules(content, this.#scope, missing).map(async (rule) => await this.#send(rule)));
  }

  /** What the rules have done so far. */
  async report(): Promise<LabReport> {
    const reply = await this.#lease.send({ report: true });
    const rules = "report" in reply ? reply.report.rules : [];
    const unused = rules.flatMap((rule) => unusedText(rule) ?? []);
    const absent = unused.length === 0 ? undefined : await this.#absentText(undefined);
    return { rules, unused: absent === undefined ? unused : [absent, ...unused] };
  }

  /** Takes back all rules. */
  async close(): Promise<void> {
    await this.#lease.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** That nothing which runs is called as the lab, or `by`, chooses: it may start later, or be a typo. */
  async #absentText(by: string | undefined): Promise<string | undefined> {
    const { container, project, service } = this.#scope;
    const wanted = by ?? container;
    if ((wanted ?? project ?? service) === undefined) return undefined;
    const { containers } = await this.#client.status();
    const absent = (what: string, name: string, known: readonly (string | null)[]): string => {
      const all = [...new Set(known.filter((each) => each !== null))].toSorted();
      const near = nearest(name, all);
      const others = all.slice(0, SHOWN_MAX).join(", ") || "none";
      return `no ${what} "${name}" is running${near === undefined ? ` (running: ${others})` : `; did you mean "${near}"?`}`;
    };
    if (project !== undefined && containers.every((each) => each.project !== project))
      return absent(
        "container of the project",
        project,
        containers.map((each) => each.project),
      );
    if (service !== undefined && containers.every((each) => each.service !== service))
      return absent(
        "container of the service",
        service,
        containers.map((each) => each.service),
      );
    const isWanted = (each: ContainerStatus): boolean =>
      each.name === wanted || each.service === wanted || each.id.startsWith(wanted ?? "");
    if (wanted === undefined || containers.some(isWanted)) return undefined;
    return absent(
      "container or service",
      wanted,
      containers.flatMap((each) => [each.name, each.service]),
    );
  }

  async #add(rule: RuleRequest): Promise<LabRule> {
    return await this.#send({ ...rule, in: { ...this.#scope, ...rule.in } });
  }

  async #send(rule: RuleRequest): Promise<LabRule> {
    const reply = await this.#lease.send({ rule });
    if (!("id" in reply)) throw new Error(`no answer to a rule: ${JSON.stringify(reply)}`);
    const { id, containers } = reply;
    return { id, containers, remove: async () => void (await this.#lease.send({ remove: id })) };
  }

  /** Of the lab's containers, or one of them, since the lab was opened; none while there is no such container. */
  async #queries(by: string | undefined): Promise<readonly QueryReport[]> {
    const { container, project, service } = this.#scope;
    const one = by ?? container;
    const filter = {
      last: LAST_QUERIES,
      ...(one !== undefined && { container: one }),
      ...(project && { project }),
      ...(service && { service }),
    };
    try {
      const { queries } = await this.#client.queries(filter);
      return queries.filter(({ time }) => Date.parse(time) >= this.#sinceMs);
    } catch (error) {
      if (codeOf(error) === "NO_SUCH_CONTAINER" || codeOf(error) === "NOT_SERVED") return [];
      throw error;
    }
  }
}

function unusedText({ name, action, text, matched, applied }: RuleUseReport): string | undefined {
  if (applied > 0) return undefined;
  if (action === "only") return undefined;
  return matched === 0
    ? `${text}: "${name}" was never queried; a program may have kept what it was answered before`
    : `${text}: it was queried ${matched} times, and the rule never applied`;
}
