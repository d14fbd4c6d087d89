/**
 * Search: a container that asks for it by a label finds the services of its project by short names, as a pod does. The list is written
 * into its resolv.conf for as long as it is served. Only a file as Docker wrote it is changed, and it is restored to the byte; what a
 * program in the container writes stays.
 */
import { reasonOf } from "../../base/lib/fault.ts";
import { COMPOSE_LABEL } from "../../base/model/compose.ts";
import type { LabelPolicy } from "../../base/model/name-choices.ts";
import type { AttachMode, Attaching } from "../../container/attach/attach-mode.ts";
import type { Decision } from "../../container/attach/decision.ts";
import { type Capture, DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { SEARCH_LABEL, SEARCH_NDOTS, labelSearch } from "../../container/facts/label-choices.ts";
import { projectIn } from "../../container/facts/label-service.ts";
import { effectiveLabels } from "../../container/facts/labels.ts";
import { type Journal, type ChangeRecord, newRecord } from "../../container/files/journal.ts";
import { restoreRecord } from "../../container/files/written-resolv-conf.ts";
import { type OpenFile, ResolvConfFile } from "../../container/files/resolv-conf-file.ts";
import {
  SEARCH_MAX,
  type SearchList,
  isAsDockerWrote,
  rewriteResolvConf,
} from "../../container/files/resolv-conf-text.ts";
import { isOurs, versionsIn } from "../../container/files/resolv-conf-writer.ts";
import { isContainerPath } from "../../container/namespace/engine-host.ts";
import { openInRoot } from "../../kernel/libc.ts";
import type { EngineCore, RunCore, Running } from "../contract.ts";

export function open({ settings }: RunCore): Running {
  // Inside of a KIND node there is no engine.
  let searches: Searches | undefined;
  return {
    engine: (core) => {
      searches = new Searches(settings, core);
    },
    configure: (next) => searches?.configure(next),
    attach: (...decided) => searches?.attach(...decided),
    searchListOf: (fact) => searches?.listOf(fact),
    changesFiles: (fact) => searches?.isChanged(fact) === true,
    remove: (id) => searches?.forget(id),
  };
}

interface KnownSearch {
  readonly startedAt: string;
  readonly base: AttachMode;
  readonly mode: SearchMode;
}

/** The containers that ask for the search list of their project, each with its SearchMode. */
class Searches {
  readonly #core: EngineCore;
  readonly #known = new Map<string, KnownSearch>();
  #settings: SearchSettings;

  constructor(settings: SearchSettings, core: EngineCore) {
    this.#settings = settings;
    this.#core = core;
  }

  /** For decisions from now on. */
  configure(settings: SearchSettings): void {
    this.#settings = settings;
  }

  attach(fact: ContainerFact, decision: Decision, mode: AttachMode | undefined): Attaching | undefined {
    const search = projectSearch(fact, this.#settings);
    if (search === undefined) {
      this.forget(fact.id);
      return undefined;
    }
    const isGuest = decision.kind === "skip" && decision.code === "own-stack";
    if (mode === undefined && !isGuest) return undefined;
    const why = keptBecause(fact, mode);
    if (mode !== undefined && why === undefined) {
      const own = this.#modeFor(fact, search, mode);
      return { mode: own, warning: own.problem };
    }
    if ("problem" in search) return { mode, warning: search.problem };
    return { mode, warning: why === undefined ? undefined : withoutEffect(why) };
  }

  listOf(fact: ContainerFact): SearchList | undefined {
    const search = projectSearch(fact, this.#settings);
    return search !== undefined && "list" in search ? search.list : undefined;
  }

  /** Nothing is decided yet about one that has not started, or whose labels may be those of its image. */
  isChanged(fact: ContainerFact): boolean {
    const { labels, source } = fact.imageLabels;
    if (source === "awaited") return projectSearch({ ...fact, labels }, this.#settings) !== undefined;
    if (fact.isStarting === true) return projectSearch(fact, this.#settings) !== undefined;
    return this.#known.has(fact.id);
  }

  forget(containerId: string): void {
    this.#known.delete(containerId);
  }

  /** The mode of this start of the container. */
  #modeFor(fact: ContainerFact, search: ProjectSearch, base: AttachMode): SearchMode {
    const known = this.#known.get(fact.id);
    if (known?.startedAt === fact.startedAt && known.base === base) {
      known.mode.update(search);
      return known.mode;
    }
    const { journal, reinspect } = this.#core;
    const openFile = this.#openerOf(fact);
    const mode = new SearchMode(fact, search, { base, journal, openFile, onChange: () => reinspect(fact.id) });
    this.#known.set(fact.id, { startedAt: fact.startedAt, base, mode });
    return mode;
  }

  #openerOf({ id, resolvConfPath: path = "" }: ContainerFact): OpenFile | undefined {
    if (!isContainerPath(path, id)) return undefined;
    return (flags) => openInRoot(this.#core.host().root, path, flags);
  }
}

/** Undefined if its file can be written here. */
function keptBecause({ nameservers }: ContainerFact, mode: AttachMode | undefined): string | undefined {
  if (mode?.keepsSearchList !== undefined) return mode.keepsSearchList;
  return nameservers.kind === "captured"
    ? "its resolv.conf is not written, because it does not name 127.0.0.11"
    : undefined;
}

interface SearchSettings {
  readonly labels: LabelPolicy;
  readonly zones: readonly string[];
}

/** The list, or why there is none. */
export type ProjectSearch = { readonly list: SearchList } | { readonly problem: string };

/**
 * The search list as the file of a pod has it: the project, all projects, and the zone. Undefined for a container that does not ask for
 * it.
 */
export function projectSearch(
  { labels, imageLabels }: Pick<ContainerFact, "labels" | "imageLabels">,
  settings: SearchSettings,
): ProjectSearch | undefined {
  const effective = effectiveLabels({ labels, imageLabels }, settings.labels);
  if (labelSearch(effective).policy !== "project") return undefined;
  const [zone] = settings.zones;
  const project = projectIn(effective);
  if (zone === undefined) return { problem: withoutEffect("there is no zone: set zone") };
  if (project === undefined) {
    const remedy = `set label io.dns11.project, or start it with Compose (${COMPOSE_LABEL.project})`;
    return { problem: withoutEffect(`the container belongs to no project: ${remedy}`) };
  }
  const domains = [`${project}.svc.${zone}`, `svc.${zone}`, zone];
  if (domains.join(" ").length > SEARCH_MAX.chars)
    return { problem: withoutEffect(`the search list would have more than ${SEARCH_MAX.chars} characters`) };
  return { list: { domains, ndots: SEARCH_NDOTS } };
}

function withoutEffect(reason: string): string {
  return `label ${SEARCH_LABEL} has no effect: ${reason}`;
}

interface SearchModeParts {
  /** How the container is attached otherwise. */
  readonly base: AttachMode;
  readonly journal: Journal;
  /** The file that Docker mounts into the container; undefined if its creator has mounted another one. */
  readonly openFile: OpenFile | undefined;
  /** `problem` has changed. */
  readonly onChange: () => void;
}

/** Attaches as `base` does, and writes the list once queries are answered. */
export class SearchMode implements AttachMode {
  readonly onlyByProcess?: string;
  readonly #fact: ContainerFact;
  readonly #parts: SearchModeParts;
  #search: ProjectSearch;
  #record: ChangeRecord;
  #isServed = false;
  #fileProblem: string | undefined;

  constructor(fact: ContainerFact, search: ProjectSearch, parts: SearchModeParts) {
    this.#fact = fact;
    this.#search = search;
    this.#parts = parts;
    const { onlyByProcess } = parts.base;
    if (onlyByProcess !== undefined) this.onlyByProcess = onlyByProcess;
    const { record } = parts.journal.read(fact.id);
    this.#record = record?.startedAt === fact.startedAt ? record : newRecord(fact, "search");
  }

  /** Why its file has no such list; undefined if it has, or nobody has tried yet. */
  get problem(): string | undefined {
    return "problem" in this.#search ? this.#search.problem : this.#fileProblem;
  }

  update(search: ProjectSearch): void {
    this.#search = search;
    if (this.#isServed) this.#apply();
  }

  capture(): Capture {
    return this.#parts.base.capture();
  }

  onVerified(): Promise<void> {
    this.#isServed = true;
    this.#apply();
    return Promise.resolve();
  }

  withdraw(): void {
    this.#isServed = false;
    this.#restore();
  }

  #apply(): void {
    const before = this.#fileProblem;
    this.#fileProblem = "problem" in this.#search ? this.#restore() : this.#write(this.#search.list);
    if (this.#fileProblem !== before) this.#parts.onChange();
  }

  /** Returns why it was not written. */
  #write(list: SearchList): string | undefined {
    const { openFile, journal } = this.#parts;
    if (openFile === undefined) return withoutEffect("another file is mounted at /etc/resolv.conf");
    const file = new ResolvConfFile(openFile);
    const text = file.read();
    if (text === undefined) return withoutEffect("its resolv.conf cannot be read");
    const known = versionsIn(this.#record.resolvConf);
    if (known === undefined ? !isAsDockerWrote(text) : !isOurs(text, known))
      return withoutEffect("another program has changed its resolv.conf");
    const original = known?.original.toString("latin1") ?? text;
    const written = rewriteResolvConf(original, { addresses: [], search: undefined, list });
    if (written === text) return undefined;
    try {
      file.assertWritable();
      const [base64, writtenBase64] = [original, written].map((each) => Buffer.from(each, "latin1").toString("base64"));
      const resolvConf = { path: this.#path, original: base64 ?? "", written: writtenBase64 ?? "" };
      const record = { ...this.#record, resolvConf };
      journal.write(record);
      this.#record = record;
      if (file.write(written)) return undefined;
      return withoutEffect("another program is writing its resolv.conf");
    } catch (error) {
      return withoutEffect(reasonOf(error));
    }
  }

  /** Returns why that failed. What was undone is in no journal. */
  #restore(): string | undefined {
    const { openFile, journal } = this.#parts;
    const { resolvConf, ...rest } = this.#record;
    if (resolvConf === undefined || openFile === undefined) return undefined;
    try {
      restoreRecord(openFile, resolvConf, [DOCKER_RESOLVER]);
      this.#record = rest;
      journal.remove(this.#fact.id);
      return undefined;
    } catch (error) {
      return `cannot restore resolv.conf: ${reasonOf(error)}`;
    }
  }

  get #path(): string {
    return this.#fact.resolvConfPath ?? "";
  }
}
