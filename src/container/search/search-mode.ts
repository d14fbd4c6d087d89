/**
 * SearchMode: attaches to a container that asks for the search list of its project, and writes that into its resolv.conf for as
 * long as it is served. Only a file as Docker wrote it is changed, and it is restored to the byte; what a program in the
 * container writes stays.
 */
import { reasonOf } from "../../base/lib/fault.ts";
import type { AttachMode } from "../attach/attach-mode.ts";
import { type Capture, DOCKER_RESOLVER } from "../capture/capture.ts";
import type { ContainerFact } from "../facts/fact.ts";
import { type Journal, type NodeRecord, newRecord } from "../kind/journal.ts";
import { restoreRecord } from "../kind/node-resolv-conf.ts";
import { type OpenFile, ResolvConfFile } from "../kind/resolv-conf-file.ts";
import { isAsDockerWrote, rewriteResolvConf } from "../kind/resolv-conf-text.ts";
import { isOurs, versionsIn } from "../kind/resolv-conf-writer.ts";
import { type ProjectSearch, withoutEffect } from "./project-search.ts";

export interface SearchModeParts {
  /** How the container is attached otherwise. */
  readonly base: AttachMode;
  readonly journal: Journal;
  /** The file that Docker mounts into the container; undefined if its creator has mounted another one. */
  readonly open: OpenFile | undefined;
  /** `problem` has changed. */
  readonly onChange: () => void;
}

export class SearchMode implements AttachMode {
  readonly notByKernel?: string;
  readonly #fact: ContainerFact;
  readonly #parts: SearchModeParts;
  #search: ProjectSearch;
  #record: NodeRecord;
  #isServed = false;
  #fileProblem: string | undefined;

  constructor(fact: ContainerFact, search: ProjectSearch, parts: SearchModeParts) {
    this.#fact = fact;
    this.#search = search;
    this.#parts = parts;
    const { notByKernel } = parts.base;
    if (notByKernel !== undefined) this.notByKernel = notByKernel;
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
  #write(list: Extract<ProjectSearch, { list: unknown }>["list"]): string | undefined {
    const { open, journal } = this.#parts;
    if (open === undefined) return withoutEffect("another file is mounted at /etc/resolv.conf");
    const file = new ResolvConfFile(open);
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
    const { open, journal } = this.#parts;
    const { resolvConf, ...rest } = this.#record;
    if (resolvConf === undefined || open === undefined) return undefined;
    try {
      restoreRecord(open, resolvConf, [DOCKER_RESOLVER]);
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
