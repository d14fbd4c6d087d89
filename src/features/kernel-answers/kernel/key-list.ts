/**
 * KeyList: keys of entries in a table of the kernel, one after the other, so that one call deletes them.
 */
import { KEY } from "./layout.ts";

/** Room for keys at first, which doubles when it is full. */
const KEYS_FIRST = 16;

export class KeyList {
  readonly #keyBytes: number;
  #bytes = Buffer.alloc(0);
  #count = 0;

  constructor(keyBytes: number) {
    this.#keyBytes = keyBytes;
  }

  get count(): number {
    return this.#count;
  }

  /** The bytes of all keys. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  at(index: number): Buffer {
    return this.#bytes.subarray(index * this.#keyBytes, (index + 1) * this.#keyBytes);
  }

  add(key: Buffer): void {
    const at = this.#count++ * this.#keyBytes;
    if (at === this.#bytes.length) {
      const longer = Buffer.allocUnsafeSlow(Math.max(KEYS_FIRST * this.#keyBytes, 2 * at));
      this.#bytes.copy(longer);
      this.#bytes = longer;
    }
    key.copy(this.#bytes, at);
  }
}

/** The question that a key is written for; only the first `nameBytes` bytes of the name are valid. */
interface KeyedQuestion {
  readonly type: number;
  readonly name: Uint8Array;
  readonly nameBytes: number;
}

/** Writes struct question. In a longer key, the bytes after it are zero. */
export function writeQuestion(
  key: Buffer,
  space: number,
  generation: number,
  { type, name, nameBytes }: KeyedQuestion,
): void {
  key.fill(0);
  key.writeUInt32LE(space, KEY.space);
  key.writeInt32LE(generation, KEY.generation);
  for (let at = 0; at < nameBytes; at++) key[KEY.name + at] = name[at] as number;
  key.writeUInt16BE(type, KEY.type);
}
