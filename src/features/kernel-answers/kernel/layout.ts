/**
 * The structures that the process shares with the program of answers.bpf.c, in the byte order of the machine except where
 * they hold parts of a packet.
 */

/** struct space: one for each namespace, in memory that both sides map. */
export const SPACE_BYTES = 584;
export const SPACE = {
  generation: 0,
  port: 4,
  isRecording: 6,
  answered: 8,
  passed: 16,
  style: 24,
  own: 32,
  records: 64,
  cached: 576,
} as const;
/** A bit for each value of the last eight bits of a port. */
export const OWN_BYTES = 32;
/** Letter case is part of a question; OPT is ignored. */
export const STYLE = { literal: 1, noEdns: 2 } as const;
/** The last queries of a namespace that the program answered, eight bytes each, by their number. */
export const RECORDS = 64;

/** struct count: answers of one kind in all namespaces, in a cache line of its own. */
export const COUNT_BYTES = 64;
export const KINDS = 256;

/** struct question: the space, its generation, then the name, with the type in its last two bytes. */
export const KEY_BYTES = 88;
export const KEY = { space: 0, generation: 4, name: 8, type: 86 } as const;
/** The longest name in a key, without its root label. */
export const NAME_BYTES_MAX = 77;
/** The most labels of such a name; the program counts the root label, too. */
export const LABELS_MAX = 35;

/** struct answer: counts of records, lengths and the response code, then all that follows the question, without OPT. */
export const VALUE_BYTES = 120;
export const VALUE = {
  answers: 0,
  authorities: 1,
  bytes: 2,
  recordBytes: 3,
  codes: 4,
  kind: 5,
  entry: 6,
  body: 8,
} as const;
export const BODY_BYTES_MAX = 112;
/** A bit of `codes` in struct answer and struct brief, beside the response code. */
export const AUTHORITATIVE = 0x80;
export const RCODE_BITS = 0x0f;

/** struct brief_question: a question, the period, then what else decides on a cached reply. */
export const BRIEF_KEY_BYTES = 96;
export const BRIEF_KEY = { period: 88, bits: 92 } as const;
/** An entry is found in one period of 2^33 ns; its phase depends on the first bytes of the first label, by this factor. */
export const PERIOD_NS = 2 ** 33;
export const PHASE_FACTOR = 0x9e3779b1;
export const PHASE_BYTES = 32;

/** struct brief: times, a counter, counts of records, their TTLs, then all that follows the question, without OPT, and where addresses are in it. */
export const BRIEF_VALUE_BYTES = 328;
export const BRIEF_VALUE = {
  since: 0,
  until: 8,
  answered: 16,
  answers: 24,
  authorities: 25,
  additionals: 26,
  bytes: 27,
  codes: 28,
  kind: 29,
  entry: 30,
  ttls: 32,
  ttlsAt: 64,
  body: 72,
  rotated: 304,
  addressesAt: 305,
} as const;
export const BRIEF_BODY_BYTES_MAX = 232;
export const BRIEF_RECORDS_MAX = 8;
/** Further bits of `codes` in struct brief. */
export const AUTHENTIC = 0x40;
export const LOCAL = 0x20;
/** The number of an entry of this table: this bit, its batch, and its index in the batch. */
export const BRIEF_ENTRY = 0x8000;
export const BATCH_SHIFT = 12;
export const BATCH_INDEX_MAX = 0xfff;
export const BATCHES = 8;
