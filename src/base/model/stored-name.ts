/**
 * StoredName: a name that is looked up like that of a question, but was known before: the target of a CNAME.
 */
import { folded } from "../dns/name.ts";
import { HASH_BASIS, hashByte } from "./label-table.ts";
import type { QuestionName } from "./visible-names.ts";

export class StoredName implements QuestionName {
  readonly folded: Uint8Array;
  readonly foldedLength: number;
  readonly labelCount: number;
  readonly lengthOf: Uint8Array;
  readonly hashOf: Int32Array;
  readonly spelled: Uint8Array;
  readonly spelledAt = 0;

  /** Wire labels, without the terminating zero. */
  constructor(labels: Uint8Array) {
    this.spelled = labels;
    this.folded = folded(labels);
    this.foldedLength = labels.length;
    const lengths = [0];
    const hashes = [HASH_BASIS];
    let hash = HASH_BASIS;
    for (let at = 0; at < labels.length;) {
      const end = at + 1 + (labels[at] as number);
      while (at < end) hash = hashByte(hash, this.folded[at++] as number);
      lengths.push(end);
      hashes.push(hash);
    }
    this.labelCount = lengths.length - 1;
    this.lengthOf = Uint8Array.from(lengths);
    this.hashOf = Int32Array.from(hashes);
  }
}
