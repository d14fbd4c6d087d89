/**
 * FoldedName: the name of a query in lower case, with its hash. One object serves all queries: only one is looked at at
 * a time.
 */
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { FOLD, NAME_BYTES_MAX } from "../../base/dns/name.ts";
import { HASH_BASIS, hashByte } from "../../base/model/label-table.ts";
import type { Outcome } from "../record/outcome.ts";

export class FoldedName {
  /** Wire labels without the root label; only the first `length` bytes are valid. */
  readonly bytes = new Uint8Array(NAME_BYTES_MAX);
  length = 0;
  hash = 0;
  /** The length of the first label with its length byte; 0 for the root. */
  firstLength = 0;
  /** One bit for the first label. */
  firstBit = 0;

  read({ question, at, nameEnd }: Outcome): void {
    const from = at + HEADER_BYTES;
    const length = nameEnd - from - 1;
    const firstLength = length === 0 ? 0 : (question[from] as number) + 1;
    const { bytes } = this;
    let hash = HASH_BASIS;
    let i = 0;
    for (; i < firstLength; i++) hash = hashByte(hash, (bytes[i] = FOLD[question[from + i] as number] as number));
    this.firstBit = 1 << (hash & 31);
    for (; i < length; i++) hash = hashByte(hash, (bytes[i] = FOLD[question[from + i] as number] as number));
    this.length = length;
    this.firstLength = firstLength;
    this.hash = hash >>> 0;
  }

  /** Names are hidden: all names with one label are the same, and all others. */
  hide(): void {
    const isSingle = this.firstLength === this.length;
    this.length = this.firstLength = 0;
    this.hash = isSingle ? 1 : 2;
    this.firstBit = 0;
  }
}
