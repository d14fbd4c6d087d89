/**
 * KernelAnswers: the program of answers.bpf.c and its tables, loaded once. Each namespace gets a space in them and a link
 * of its own. The link's program is eight instructions: it says which space, and calls the shared one. So the identity
 * of a namespace is in what is attached to its lo, and nothing that a packet has can change it.
 *
 * An entry is never changed, and its memory is used again only after the generation of its space has ended. So the
 * program notices if it has read two answers in one, and every answer belongs to one state of the names.
 */
import type { ReplyStyle } from "../../base/model/behaviour.ts";
import { inSlices } from "../../base/lib/slices.ts";
import type { PoolLimits } from "../../base/lib/share.ts";
import { MAP_FLAG, MAP_TYPE, createMap, loadProgram, putProgram } from "../bpf.ts";
import { closeQuietly, mapShared } from "../libc.ts";
import { AnswerKinds } from "./answer-kinds.ts";
import { AnswerTable } from "./answer-table.ts";
import { BriefTable } from "./brief-table.ts";
import { sharedProgram, spaceProgram } from "./instructions.ts";
import { KernelSpace } from "./kernel-space.ts";
import { COUNT_BYTES, KINDS, SPACE_BYTES, STYLE } from "./layout.ts";
import { LinkThread } from "./link-thread.ts";
import { SpaceMemory } from "./space-memory.ts";

const LICENSE = "Dual BSD/GPL";

export interface KernelAnswersLimits {
  /** Namespaces. */
  readonly spaces: number;
  /** Answers until the names change, and for some seconds. */
  readonly answers: PoolLimits;
  readonly brief: PoolLimits;
}

export class KernelAnswers {
  /** What was answered in all namespaces. */
  readonly kinds: AnswerKinds;
  readonly #spaces: number;
  readonly #answers: AnswerTable;
  readonly #brief: BriefTable;
  readonly #counts: number;
  /** The links' programs call through it. The kernel empties it when no process has it open any more. */
  readonly #calls: number;
  readonly #memory: SpaceMemory;
  readonly #links = new LinkThread();
  readonly #free: number[];
  readonly #open = new Set<KernelSpace>();
  #style = 0;

  /** Throws a SystemFault if the kernel refuses. */
  constructor({ spaces, answers, brief }: KernelAnswersLimits) {
    const opened: number[] = [];
    const keep = (fd: number): number => (opened.push(fd), fd);
    try {
      this.#spaces = keep(
        createMap({
          name: "dns11_spaces",
          type: MAP_TYPE.ARRAY,
          keyBytes: 4,
          valueBytes: SPACE_BYTES,
          entries: spaces,
          flags: MAP_FLAG.MMAPABLE,
        }),
      );
      this.#answers = new AnswerTable(spaces, answers);
      keep(this.#answers.map);
      this.#brief = new BriefTable(spaces, brief);
      keep(this.#brief.map);
      this.#counts = keep(
        createMap({
          name: "dns11_counts",
          type: MAP_TYPE.ARRAY,
          keyBytes: 4,
          valueBytes: COUNT_BYTES,
          entries: KINDS,
          flags: MAP_FLAG.MMAPABLE,
        }),
      );
      this.#calls = keep(
        createMap({ name: "dns11_calls", type: MAP_TYPE.PROG_ARRAY, keyBytes: 4, valueBytes: 4, entries: 1 }),
      );
      this.#memory = new SpaceMemory(this.#spaces, spaces);
      this.kinds = new AnswerKinds(mapShared(this.#counts, KINDS * COUNT_BYTES));
      const maps = {
        spaces: this.#spaces,
        answers: this.#answers.map,
        brief: this.#brief.map,
        counts: this.#counts,
      };
      const program = keep(loadProgram("dns11_answers", sharedProgram(maps), LICENSE));
      putProgram(this.#calls, 0, program);
      closeQuietly(program);
    } catch (error) {
      for (const fd of opened) closeQuietly(fd);
      throw error;
    }
    this.#free = Array.from({ length: spaces }, (_, index) => spaces - 1 - index);
  }

  /** Sets how the process answers from now on; all answers end. */
  setStyle({ compresses, ignoresCase, speaksEdns }: ReplyStyle): void {
    const isLiteral = !compresses || !ignoresCase;
    this.#style = (isLiteral ? STYLE.literal : 0) | (speaksEdns ? 0 : STYLE.noEdns);
    this.forgetAll();
    for (const space of this.#open) space.setStyle(this.#style);
  }

  /** The answers of one namespace; undefined if all spaces are taken. It takes no queries yet. */
  open(): KernelSpace | undefined {
    const index = this.#free.pop();
    if (index === undefined) return undefined;
    try {
      const view = this.#memory.viewOf(index);
      const generation = this.#memory.generationOf(index);
      const program = loadProgram("dns11_space", spaceProgram(index, this.#calls), LICENSE);
      const space: KernelSpace = new KernelSpace({
        index,
        view,
        generation,
        program,
        answers: this.#answers,
        brief: this.#brief,
        calls: this.#calls,
        kinds: this.kinds,
        links: this.#links,
        onClose: () => {
          this.#open.delete(space);
          this.#free.push(index);
        },
      });
      space.setStyle(this.#style);
      this.#open.add(space);
      return space;
    } catch (error) {
      this.#free.push(index);
      throw error;
    }
  }

  /**
   * The programs take the place of those of the process that is replaced. Not before the keeper has copies of what they
   * need: if this process dies, queries go on through them until the old one has put its own back.
   */
  async takePlaces(): Promise<void> {
    await inSlices(placing([...this.#open].filter(({ isInPlace }) => !isInPlace)));
  }

  /** Ends all answers of all namespaces at once: what the names are may have changed. */
  forgetAll(): void {
    for (const space of this.#open) space.forget();
  }

  /** Before this process exits. */
  async settled(): Promise<void> {
    await this.#links.loaded();
  }

  close(): void {
    for (const space of this.#open) space.close();
    this.#links.close();
    for (const table of [this.#answers, this.#brief]) table.close();
    for (const fd of [this.#calls, this.#counts, this.#spaces]) closeQuietly(fd);
  }
}

function* placing(spaces: Iterable<KernelSpace>): Generator<void> {
  for (const space of spaces) yield space.takePlace();
}
