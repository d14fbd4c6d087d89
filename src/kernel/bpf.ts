/**
 * bpf(2): maps, programs and links, as far as the program of `src/features/kernel-answers/kernel` needs them. Structures are written byte by byte;
 * nothing but the kernel is needed to load it. Calls run synchronously on the calling thread, so a link is made in the
 * namespace that the thread is in.
 */
import { Fault, codeOf } from "../base/lib/fault.ts";
import { SystemFault, addressOf, bind, lastErrno } from "./libc.ts";
import { systemCallNumber } from "./system-calls.ts";
import { LOOPBACK_INDEX } from "./rtnetlink-constants.ts";

const c = {
  bpf: bind<(call: number, command: number, attributes: Uint8Array, size: number) => number>(
    "long syscall(long call, long command, void *attributes, size_t size)",
  ),
};

const COMMAND = {
  MAP_CREATE: 0,
  MAP_LOOKUP_ELEM: 1,
  MAP_UPDATE_ELEM: 2,
  PROG_LOAD: 5,
  PROG_TEST_RUN: 10,
  PROG_QUERY: 16,
  MAP_DELETE_BATCH: 27,
  LINK_CREATE: 28,
  LINK_UPDATE: 29,
} as const;

export const MAP_TYPE = { HASH: 1, ARRAY: 2, PROG_ARRAY: 3, PERCPU_ARRAY: 6 } as const;
/** For a map: memory is taken only by elements that exist; the process may map it. */
export const MAP_FLAG = { NO_PREALLOC: 1, MMAPABLE: 1 << 10 } as const;
const PROG_TYPE_SCHED_CLS = 3;
const TCX_INGRESS = 46;
/** An existing element is left as it is. */
const BPF_NOEXIST = 1;
/** The flag of tcx that means: before all programs that are there. */
const BPF_F_BEFORE = 1 << 3;
const ATTRIBUTE_BYTES = 144;
const NAME_BYTES = 16;
const INSTRUCTION_BYTES = 8;
const LOG_BYTES = 1 << 20;
const LOG_LEVEL = 1;
/** A signal interrupts the verifier, which then fails with EAGAIN. */
const LOAD_ATTEMPTS = 5;
const EAGAIN = 11;
const ENOSYS = 38;
const ENOENT = 2;
const ENOSPC = 28;
const CONTEXT_BYTES = 192;
/** The offset in struct __sk_buff, for a test. */
const CONTEXT_MARK_AT = 8;

interface MapPlan {
  readonly name: string;
  readonly type: number;
  readonly keyBytes: number;
  readonly valueBytes: number;
  readonly entries: number;
  readonly flags?: number;
}

/** One buffer for all calls: they neither wait nor call back. */
const attributes = Buffer.alloc(ATTRIBUTE_BYTES);

function systemCall(): number {
  const number = systemCallNumber("bpf");
  if (number === undefined) throw new SystemFault("bpf", ENOSYS, process.arch);
  return number;
}

function call(command: keyof typeof COMMAND, write: (attributes: Buffer) => void): number {
  const number = systemCall();
  attributes.fill(0);
  write(attributes);
  return c.bpf(number, COMMAND[command], attributes, ATTRIBUTE_BYTES);
}

function mustCall(command: keyof typeof COMMAND, about: string, write: (attributes: Buffer) => void): number {
  const result = call(command, write);
  if (result < 0) throw new SystemFault(`bpf ${command}`, lastErrno(), about);
  return result;
}

/** Returns the map's descriptor. All descriptors of bpf(2) are closed in children. */
export function createMap({ name, type, keyBytes, valueBytes, entries, flags = 0 }: MapPlan): number {
  return mustCall("MAP_CREATE", name, (a) => {
    for (const [index, value] of [type, keyBytes, valueBytes, entries, flags].entries()) {
      a.writeUInt32LE(value, index * 4);
    }
    a.write(name, 28, NAME_BYTES - 1, "latin1");
  });
}

function elementOf(a: Buffer, map: number, key: Uint8Array, value: Uint8Array, flags = 0): void {
  a.writeUInt32LE(map, 0);
  a.writeBigUInt64LE(BigInt(addressOf(key)), 8);
  a.writeBigUInt64LE(BigInt(addressOf(value)), 16);
  a.writeBigUInt64LE(BigInt(flags), 24);
}

/** Elements of a map that are written one after the other: the addresses of their bytes are looked up once. */
export class ElementWriter {
  /** The bytes of the next element. */
  readonly key: Buffer;
  readonly value: Buffer;
  readonly #number = systemCall();
  readonly #attributes = Buffer.alloc(ATTRIBUTE_BYTES);

  /** The caller keeps the descriptor. */
  constructor(map: number, keyBytes: number, valueBytes: number) {
    this.key = Buffer.allocUnsafeSlow(keyBytes);
    this.value = Buffer.allocUnsafeSlow(valueBytes);
    elementOf(this.#attributes, map, this.key, this.value, BPF_NOEXIST);
  }

  /** Adds the element unless the key exists; returns whether it was added. */
  insert(): boolean {
    return c.bpf(this.#number, COMMAND.MAP_UPDATE_ELEM, this.#attributes, ATTRIBUTE_BYTES) >= 0;
  }
}

/** Reads an element; returns whether there is one. */
export function readElement(map: number, key: Uint8Array, into: Uint8Array): boolean {
  return call("MAP_LOOKUP_ELEM", (a) => elementOf(a, map, key, into)) >= 0;
}

/** Puts a program into a map of programs. */
export function putProgram(map: number, index: number, program: number): void {
  const [key, value] = [Buffer.alloc(4), Buffer.alloc(4)];
  key.writeUInt32LE(index);
  value.writeUInt32LE(program);
  mustCall("MAP_UPDATE_ELEM", "a program", (a) => elementOf(a, map, key, value));
}

/** Deletes the first `count` keys of `keys`, as far as they exist. */
export function deleteElements(map: number, keys: Uint8Array, keyBytes: number, count: number): void {
  let from = 0;
  while (from < count) {
    const result = call("MAP_DELETE_BATCH", (a) => {
      a.writeBigUInt64LE(BigInt(addressOf(keys) + from * keyBytes), 16);
      a.writeUInt32LE(count - from, 32);
      a.writeUInt32LE(map, 36);
    });
    if (result >= 0) return;
    if (lastErrno() !== ENOENT) throw new SystemFault("bpf MAP_DELETE_BATCH", lastErrno());
    // The kernel stops at a key that does not exist, and says how many it has deleted before it.
    from += attributes.readUInt32LE(32) + 1;
  }
}

/** The code for a kernel whose verifier does not accept the program. */
export const REFUSED = "BPF_REFUSED";

/** Loads a program for tcx; returns its descriptor. If the verifier rejects it, the cause of the Fault is the verifier's message. */
export function loadProgram(name: string, instructions: Uint8Array, license: string): number {
  const text = Buffer.from(`${license}\0`, "latin1");
  const load = (log: Buffer | undefined): number =>
    call("PROG_LOAD", (a) => {
      a.writeUInt32LE(PROG_TYPE_SCHED_CLS, 0);
      a.writeUInt32LE(instructions.length / INSTRUCTION_BYTES, 4);
      a.writeBigUInt64LE(BigInt(addressOf(instructions)), 8);
      a.writeBigUInt64LE(BigInt(addressOf(text)), 16);
      if (log !== undefined) {
        a.writeUInt32LE(LOG_LEVEL, 24);
        a.writeUInt32LE(log.length, 28);
        a.writeBigUInt64LE(BigInt(addressOf(log)), 32);
      }
      a.write(name, 48, NAME_BYTES - 1, "latin1");
    });
  for (let attempt = 1; attempt < LOAD_ATTEMPTS; attempt++) {
    const fd = load(undefined);
    if (fd >= 0) return fd;
    if (lastErrno() !== EAGAIN) break;
  }
  const errno = lastErrno();
  const log = Buffer.alloc(LOG_BYTES);
  const again = load(log);
  if (again >= 0) return again;
  const words = lastLines(log);
  const cause = new SystemFault("bpf PROG_LOAD", errno, [name, ...words].join(": "));
  if (words.length === 0) throw cause;
  throw new Fault(REFUSED, "the kernel refused the program", {
    cause,
    remedy: "Report it with the file that dns11 doctor --bundle makes, or set answers: process.",
  });
}

/** The end of the verifier's log, which names the instruction and the reason. */
function lastLines(log: Buffer): string[] {
  const text = log.toString("latin1", 0, log.indexOf(0)).trimEnd();
  return text === "" ? [] : [text.split("\n").slice(-3).join("; ")];
}

/**
 * Attaches a program to the packets that arrive at lo of the thread's namespace, before the programs there.
 * Returns the descriptor of the link. Waits for a grace period of RCU, as closing its last descriptor does.
 */
export function attachToLoopback(program: number): number {
  try {
    return mustCall("LINK_CREATE", "tcx ingress of lo", (a) => {
      a.writeUInt32LE(program, 0);
      a.writeUInt32LE(LOOPBACK_INDEX, 4);
      a.writeUInt32LE(TCX_INGRESS, 8);
      a.writeUInt32LE(BPF_F_BEFORE, 12);
    });
  } catch (error) {
    if (codeOf(error) !== "EINVAL") throw error;
    throw new Fault("NO_TCX", "the kernel has no tcx", {
      cause: error,
      remedy: "Use Linux 6.6 or later, or set answers: process.",
    });
  }
}

/** Has the link run another program from now on. Unlike a new link, this waits for nothing. */
export function exchangeProgram(link: number, program: number): void {
  mustCall("LINK_UPDATE", "tcx ingress of lo", (a) => {
    a.writeUInt32LE(link, 0);
    a.writeUInt32LE(program, 4);
  });
}

/**
 * The number of the program that packets which arrive at an interface of the thread's namespace meet first; 0 without one,
 * undefined if the kernel does not say. For tests: it waits for the lock of all interfaces, up to 0.1 s while others change some.
 */
export function firstAtIngress(interfaceIndex: number): number | undefined {
  const numbers = Buffer.alloc(4);
  const result = call("PROG_QUERY", (a) => {
    a.writeUInt32LE(interfaceIndex, 0);
    a.writeUInt32LE(TCX_INGRESS, 4);
    a.writeBigUInt64LE(BigInt(addressOf(numbers)), 16);
    a.writeUInt32LE(1, 24);
  });
  // There may be more.
  return result >= 0 || lastErrno() === ENOSPC ? numbers.readUInt32LE() : undefined;
}

/** Runs a program on a packet; returns the packet that it leaves. Nothing is sent. For tests and the check at start. */
export function runProgram(program: number, packet: Uint8Array, into: Buffer, mark = 0): Buffer {
  const context = Buffer.alloc(CONTEXT_BYTES);
  context.writeUInt32LE(mark, CONTEXT_MARK_AT);
  mustCall("PROG_TEST_RUN", "a packet", (a) => {
    a.writeUInt32LE(program, 0);
    a.writeUInt32LE(packet.length, 8);
    a.writeUInt32LE(into.length, 12);
    a.writeBigUInt64LE(BigInt(addressOf(packet)), 16);
    a.writeBigUInt64LE(BigInt(addressOf(into)), 24);
    a.writeUInt32LE(CONTEXT_BYTES, 40);
    a.writeBigUInt64LE(BigInt(addressOf(context)), 48);
  });
  return into.subarray(0, attributes.readUInt32LE(12));
}
