/**
 * KernelAnswers: the program of answers.bpf.c and its tables, loaded once. Each namespace gets a space in them and a link of its own. The
 * link's program is ten instructions: it lets the process's own queries pass, says which space it is, and calls the shared program. So the
 * identity of a namespace is in what is attached to its lo, and no content of a packet can change it.
 *
 * An entry is never changed, and its memory is used again only after the generation of its space has ended. So the program notices if it
 * has read parts of two answers, and every answer belongs to one state of the names.
 */
import type { ReplyStyle } from "../../../base/model/behaviour.ts";
import { inSlices } from "../../../base/lib/slices.ts";
import type { PoolLimits } from "../../../base/lib/share.ts";
import { MAP_FLAG, MAP_TYPE, createMap, loadProgram, putProgram } from "../../../kernel/bpf.ts";
import { closeQuietly, mapShared } from "../../../kernel/libc.ts";
import { AnswerTable, AnswerKinds } from "./answer-table.ts";
import { BriefTable } from "./brief-table.ts";
import { KernelSpace } from "./kernel-space.ts";
import { COUNT_BYTES, KINDS, SPACE_BYTES, STYLE, SPACE } from "./layout.ts";
import { LinkThread } from "./link-thread.ts";
import { INSTRUCTIONS, MAP_REFERENCES } from "./program.ts";

/** Mapping these takes 36 KiB. */
const SPACES_FIRST = 64;

const INSTRUCTION_BYTES = 8;

/** The offset of cb[0] in struct __sk_buff. */
const CB_OFFSET = 48;

/** The offset of mark in struct __sk_buff. */
const MARK_OFFSET = 8;

/** The helper bpf_tail_call. */
const TAIL_CALL = 12;

/** In an instruction that loads a map, this register value says that the number is a descriptor. */
const PSEUDO_MAP_FD = 1;

/** What the program of one link is made of. */
interface LinkProgram {
  readonly index: number;
  /** Packets with this mark are the process's own. */
  readonly mark: number | undefined;
  /** The map that the shared program is in. */
  readonly calls: number;
}

const LICENSE = "Dual BSD/GPL";

interface KernelAnswersLimits {
  readonly spaces: number;
  /** Entries with answers until the names change; then entries with answers for some seconds. */
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
  /** The map through which the links' programs call the shared program. The kernel empties it when no process has it open any more. */
  readonly #calls: number;
  readonly #memory: SpaceMemory;
  readonly #links = new LinkThread();
  readonly #free: number[];
  readonly #open = new Set<KernelSpace>();
  #style = 0;

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

  /** Sets how the process answers from now on, and ends all answers. */
  setStyle({ compresses, ignoresCase, speaksEdns }: ReplyStyle): void {
    const isLiteral = !compresses || !ignoresCase;
    this.#style = (isLiteral ? STYLE.literal : 0) | (speaksEdns ? 0 : STYLE.noEdns);
    this.forgetAll();
    for (const space of this.#open) space.setStyle(this.#style);
  }

  /**
   * Opens the answers of one namespace, which takes no queries yet; undefined if all spaces are taken. `mark`: the mark of the process's
   * own queries to Docker's resolver.
   */
  open(mark?: number): KernelSpace | undefined {
    const index = this.#free.pop();
    if (index === undefined) return undefined;
    try {
      const view = this.#memory.viewOf(index);
      const generation = this.#memory.generationOf(index);
      const program = loadProgram("dns11_space", spaceProgram({ index, mark, calls: this.#calls }), LICENSE);
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
   * Replaces the programs of the previous process by those of this one. The keeper must have copies of what they need before: if this
   * process dies, queries go through them until the old process has put its own programs back.
   */
  async takePlaces(): Promise<void> {
    await inSlices(placing([...this.#open].filter(({ isInPlace }) => !isInPlace)));
  }

  /** Ends all answers of all namespaces at once, because names may have changed. */
  forgetAll(): void {
    for (const space of this.#open) space.forget();
  }

  /** Call it before this process exits. */
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

/** The shared program, with the descriptors of its maps in it. The program of one link is so short that it is written here. */
function sharedProgram(maps: Readonly<Record<"answers" | "brief" | "counts" | "spaces", number>>): Buffer {
  const instructions = Buffer.from(INSTRUCTIONS, "base64");
  for (const [index, map] of MAP_REFERENCES) setMap(instructions, index, maps[map]);
  return instructions;
}

/** The program of one link: writes the space's index where only programs write, and calls the shared program. */
function spaceProgram({ index, mark, calls }: LinkProgram): Buffer {
  const passing =
    mark === undefined
      ? []
      : // r2 = skb->mark; if its 32 bits are the mark, go to the end
        [instruction(0x61, 2, 1, MARK_OFFSET, 0), instruction(0x16, 2, 0, 6, mark | 0)];
  const instructions = Buffer.concat([
    ...passing,
    // r2 = index; skb->cb[0] = r2
    instruction(0xb7, 2, 0, 0, index),
    instruction(0x63, 1, 2, CB_OFFSET, 0),
    // r2 = calls
    instruction(0x18, 2, 0, 0, 0),
    instruction(0, 0, 0, 0, 0),
    // r3 = 0; tail_call(r1, r2, r3)
    instruction(0xb7, 3, 0, 0, 0),
    instruction(0x85, 0, 0, 0, TAIL_CALL),
    // If the map has no program, the packet goes its way (TCX_NEXT).
    instruction(0xb7, 0, 0, 0, -1),
    instruction(0x95, 0, 0, 0, 0),
  ]);
  setMap(instructions, passing.length + 2, calls);
  return instructions;
}

function instruction(code: number, to: number, from: number, offset: number, value: number): Buffer {
  const bytes = Buffer.alloc(INSTRUCTION_BYTES);
  bytes[0] = code;
  bytes[1] = (from << 4) | to;
  bytes.writeInt16LE(offset, 2);
  bytes.writeInt32LE(value, 4);
  return bytes;
}

/** Has the instruction at `index` load the address of a map. */
function setMap(instructions: Buffer, index: number, map: number): void {
  const at = index * INSTRUCTION_BYTES;
  instructions[at + 1] = ((instructions[at + 1] as number) & 0x0f) | (PSEUDO_MAP_FD << 4);
  instructions.writeInt32LE(map, at + 4);
}

/**
 * The map of the spaces as memory of this process. The kernel makes every page of a mapping resident at once, and the whole map has 2.3 MB.
 * So only its beginning is mapped, enough for as many spaces as were ever open at the same time, and twice as much when that is too little.
 * Earlier mappings stay: views point into them.
 */
class SpaceMemory {
  readonly #map: number;
  readonly #spaces: number;
  #memory: ArrayBuffer;

  /** `map` is its descriptor, `spaces` their number. Throws a SystemFault if the kernel refuses. */
  constructor(map: number, spaces: number) {
    this.#map = map;
    this.#spaces = spaces;
    this.#memory = this.#mapped(SPACES_FIRST);
  }

  /** Throws a SystemFault if there is not enough memory. */
  viewOf(index: number): DataView {
    this.#reach(index);
    return new DataView(this.#memory, index * SPACE_BYTES, SPACE_BYTES);
  }

  generationOf(index: number): Int32Array {
    this.#reach(index);
    return new Int32Array(this.#memory, index * SPACE_BYTES + SPACE.generation, 1);
  }

  #reach(index: number): void {
    let spaces = this.#memory.byteLength / SPACE_BYTES;
    if (index < spaces) return;
    while (index >= spaces) spaces *= 2;
    this.#memory = this.#mapped(spaces);
  }

  #mapped(spaces: number): ArrayBuffer {
    return mapShared(this.#map, Math.min(spaces, this.#spaces) * SPACE_BYTES);
  }
}
