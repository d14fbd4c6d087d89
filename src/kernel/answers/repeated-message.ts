/**
 * RepeatedMessage: an answer of the kernel as a message, for those who record it. It has no id and no flags, and the name
 * in lower case: of the queries that it answers, the kernel keeps nothing.
 */
import { HEADER_BYTES, writeCounts } from "../../base/dns/header.ts";
import { CLASS, QUESTION_FIXED_BYTES } from "../../base/dns/record.ts";
import type { RepeatedAnswer } from "../../base/model/kernel-answer.ts";
import { BRIEF_BODY_BYTES_MAX, BRIEF_VALUE, KEY, NAME_BYTES_MAX, RCODE_BITS, VALUE } from "./layout.ts";

const ROOT_LABEL_BYTES = 1;
const MESSAGE_BYTES_MAX =
  HEADER_BYTES + NAME_BYTES_MAX + ROOT_LABEL_BYTES + QUESTION_FIXED_BYTES + BRIEF_BODY_BYTES_MAX;

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
    const [answers, authorities] = [value[VALUE.answers] as number, value[VALUE.authorities] as number];
    writeCounts(this.#message, 0, answers, authorities, 0);
    this.#rcode = (value[VALUE.codes] as number) & RCODE_BITS;
    this.#write(entry, key, value, VALUE.body, value[VALUE.bytes] as number);
  }

  /** The same for one of the other table, with the TTLs that it had when it was written. */
  writeBrief(entry: number, key: Buffer, value: Buffer): void {
    const { answers, authorities, additionals, codes, body, bytes } = BRIEF_VALUE;
    const [inAnswer, inAuthority, beside] = [value[answers], value[authorities], value[additionals]] as [
      number,
      number,
      number,
    ];
    writeCounts(this.#message, 0, inAnswer, inAuthority, beside);
    this.#rcode = (value[codes] as number) & RCODE_BITS;
    this.#write(entry, key, value, body, value[bytes] as number);
  }

  #write(entry: number, key: Buffer, value: Buffer, body: number, bytes: number): void {
    const message = this.#message;
    this.entry = entry;
    this.#type = key.readUInt16BE(KEY.type);
    this.#nameEnd = HEADER_BYTES + key.copy(message, HEADER_BYTES, KEY.name, nameEnd(key));
    let at = message.writeUInt16BE(this.#type, this.#nameEnd);
    at = message.writeUInt16BE(CLASS.IN, at);
    this.#length = at + value.copy(message, at, body, body + bytes);
  }

  answer(source: RepeatedAnswer["source"], atMs: number): RepeatedAnswer {
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
