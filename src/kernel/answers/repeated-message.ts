/**
 * RepeatedMessage: an answer of the kernel as a message, for those who record it. It has no id and no flags, and the name
 * in lower case: of the queries that it answers, the kernel keeps nothing.
 */
import { HEADER_BYTES, writeCounts } from "../../base/dns/header.ts";
import { CLASS, QUESTION_FIXED_BYTES } from "../../base/dns/record.ts";
import type { RepeatedAnswer } from "../../base/model/kernel-answer.ts";
import type { LocalSource } from "../../base/model/local-source.ts";
import { BODY_BYTES_MAX, KEY, NAME_BYTES_MAX, RCODE_BITS, VALUE } from "./layout.ts";

const ROOT_LABEL_BYTES = 1;
const MESSAGE_BYTES_MAX = HEADER_BYTES + NAME_BYTES_MAX + ROOT_LABEL_BYTES + QUESTION_FIXED_BYTES + BODY_BYTES_MAX;

export class RepeatedMessage {
  readonly #message = Buffer.alloc(MESSAGE_BYTES_MAX);
  #type = 0;
  #rcode = 0;
  #nameEnd = 0;
  #length = 0;
  /** The entry of which it is the answer. */
  entry = -1;

  /** Writes the message from the key and the value of an entry. */
  write(entry: number, key: Buffer, value: Buffer): void {
    const message = this.#message;
    this.entry = entry;
    this.#type = key.readUInt16BE(KEY.type);
    this.#rcode = (value[VALUE.codes] as number) & RCODE_BITS;
    writeCounts(message, 0, value[VALUE.answers] as number, value[VALUE.authorities] as number, 0);
    this.#nameEnd = HEADER_BYTES + key.copy(message, HEADER_BYTES, KEY.name, nameEnd(key));
    let at = message.writeUInt16BE(this.#type, this.#nameEnd);
    at = message.writeUInt16BE(CLASS.IN, at);
    this.#length = at + value.copy(message, at, VALUE.body, VALUE.body + (value[VALUE.bytes] as number));
  }

  answer(source: LocalSource, atMs: number): RepeatedAnswer {
    const message = this.#message;
    return {
      type: this.#type,
      rcode: this.#rcode,
      source,
      message,
      length: this.#length,
      nameEnd: this.#nameEnd,
      atMs,
    };
  }
}

/** Where the name of a key ends, with its root label. */
function nameEnd(key: Uint8Array): number {
  let at = KEY.name;
  while (at < KEY.name + NAME_BYTES_MAX && key[at] !== 0) at += (key[at] as number) + 1;
  return at + ROOT_LABEL_BYTES;
}
