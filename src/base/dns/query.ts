/**
 * Builds a query: a header, one question, and an optional OPT. For the few queries that dns11 makes itself; those of
 * containers are forwarded as they came.
 */
import { setU16 } from "./bytes.ts";
import { ADDITIONALS_AT, FLAGS_AT, HEADER_BYTES, ID_AT, QUESTIONS_AT, RD } from "./header.ts";
import { OPT_BYTES, writeOpt } from "./opt.ts";
import { CLASS, CLASS_AT, QUESTION_FIXED_BYTES } from "./record.ts";

interface QueryParts {
  /** Wire labels, without the terminating zero. */
  readonly labels: Uint8Array;
  readonly type: number;
  readonly id?: number;
  readonly isRecursive?: boolean;
  readonly hasOpt?: boolean;
}

export function queryOf({ labels, type, id = 0, isRecursive = true, hasOpt = false }: QueryParts): Buffer {
  const nameEnd = HEADER_BYTES + labels.length + 1;
  const questionEnd = nameEnd + QUESTION_FIXED_BYTES;
  const query = Buffer.alloc(questionEnd + (hasOpt ? OPT_BYTES : 0));
  setU16(query, ID_AT, id);
  query[FLAGS_AT] = isRecursive ? RD : 0;
  setU16(query, QUESTIONS_AT, 1);
  query.set(labels, HEADER_BYTES);
  setU16(query, nameEnd, type);
  setU16(query, nameEnd + CLASS_AT, CLASS.IN);
  if (!hasOpt) return query;
  setU16(query, ADDITIONALS_AT, 1);
  writeOpt(query, questionEnd, 0, false);
  return query;
}
