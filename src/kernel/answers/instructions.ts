/**
 * Instructions of eBPF: the shared program with the descriptors of its maps in it, and the program of one link, which is so
 * short that it is written here.
 */
import { INSTRUCTIONS, MAP_REFERENCES } from "./program.ts";

const INSTRUCTION_BYTES = 8;
/** The offset of cb[0] in struct __sk_buff. */
const CB_OFFSET = 48;
/** The helper bpf_tail_call. */
const TAIL_CALL = 12;
/** The instruction's number is a descriptor. */
const PSEUDO_MAP_FD = 1;

/** The shared program, with the descriptors of its maps. */
export function sharedProgram(maps: Readonly<Record<"answers" | "brief" | "counts" | "spaces", number>>): Buffer {
  const instructions = Buffer.from(INSTRUCTIONS, "base64");
  for (const [index, map] of MAP_REFERENCES) setMap(instructions, index, maps[map]);
  return instructions;
}

/** The program of one link: writes the space's index where only programs write, and calls the shared program. */
export function spaceProgram(index: number, calls: number): Buffer {
  const instructions = Buffer.concat([
    // r2 = index; skb->cb[0] = r2
    instruction(0xb7, 2, 0, 0, index),
    instruction(0x63, 1, 2, CB_OFFSET, 0),
    // r2 = calls
    instruction(0x18, 2, 0, 0, 0),
    instruction(0, 0, 0, 0, 0),
    // r3 = 0; tail_call(r1, r2, r3)
    instruction(0xb7, 3, 0, 0, 0),
    instruction(0x85, 0, 0, 0, TAIL_CALL),
    // Nothing is there: the packet goes its way (TCX_NEXT).
    instruction(0xb7, 0, 0, 0, -1),
    instruction(0x95, 0, 0, 0, 0),
  ]);
  setMap(instructions, 2, calls);
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
