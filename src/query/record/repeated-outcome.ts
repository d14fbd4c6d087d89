/**
 * RepeatedOutcome: a query that the kernel has answered, as an outcome like that of any other.
 */
import { u16 } from "../../base/dns/bytes.ts";
import { ANSWERS_AT } from "../../base/dns/header.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import type { RepeatedAnswer } from "../../base/model/kernel-answer.ts";
import { QUERY_RESULT } from "../../base/model/query-record.ts";
import { Outcome, STAGE } from "./outcome.ts";

export class RepeatedOutcome extends Outcome {
  /** Valid as long as the answer. */
  of({ type, rcode, source, message, length, nameEnd }: RepeatedAnswer): this {
    this.begin(message, 0, false);
    if (source === "cache") {
      this.stage = STAGE.cache;
      this.result = QUERY_RESULT.cached;
    } else {
      this.stage = STAGE.local;
      this.source = source;
      this.lacksAddress = type === TYPE.A && rcode === RCODE.NOERROR && u16(message, ANSWERS_AT) === 0;
    }
    this.type = type;
    this.rcode = rcode;
    this.nameEnd = nameEnd;
    this.length = length;
    return this;
  }
}
