import { u16 } from "../../base/dns/bytes.ts";
import { ANSWERS_AT } from "../../base/dns/header.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { QUERY_RESULT } from "../../base/model/query-record.ts";
import type { KernelAnswerMemory, RepeatedAnswer } from "./kernel/kernel-answer.ts";
import type { Client } from "../../query/client/client.ts";
import type { RepeatedQueries } from "../../query/history/query-history.ts";
import { Outcome, STAGE } from "../../query/record/outcome.ts";
import type { RepeatMark, Repeater, WrittenReply } from "../../query/repeater.ts";
import type { Question } from "../../query/wire/question.ts";
import { AnswerWriter } from "./answer-writer.ts";

const writer = new AnswerWriter();

/**
 * A client whose answers the kernel repeats from one memory: each is written there, and what it has answered with them comes back to the
 * client's counters, its history and its failures when somebody reads these. Nothing is woken up for a query.
 */
export class ClientAnswers implements Repeater, RepeatedQueries {
  readonly #client: Client;
  readonly #memory: KernelAnswerMemory;
  readonly #outcome = new RepeatedOutcome();
  /** The number of the memory's answers that are counted, and of its cached replies among them. */
  #collected: number;
  #collectedCached: number;
  #isEnded = false;

  /** From now on. */
  constructor(client: Client, memory: KernelAnswerMemory) {
    this.#client = client;
    this.#memory = memory;
    memory.onEnding = () => this.read();
    memory.onFailuresEnding = () => this.#collectFailed();
    client.history.repeated = this;
    this.switched();
    client.repeater = this;
    memory.leave(client.ownQueries.udpPorts);
    this.#collected = memory.answered;
    this.#collectedCached = memory.answeredFromCache;
  }

  offer(block: Buffer, question: Question, reply: WrittenReply, mark: RepeatMark): void {
    writer.write(this.#memory, block, question, reply, mark);
  }

  forget(): void {
    this.#memory.forget();
  }

  leave(ports: Iterable<number>): void {
    this.#memory.leave(ports);
  }

  collect(): void {
    const { counters } = this.#client;
    this.#collectFailed();
    // The kernel counts an answer first, then that it was a cached one; so they are read the other way round.
    const { answeredFromCache } = this.#memory;
    const { answered } = this.#memory;
    const fresh = answered - this.#collected;
    // Less while a query of our own is on its way, which is not counted.
    if (fresh <= 0) return;
    const cached = Math.min(answeredFromCache - this.#collectedCached, fresh);
    this.#collected = answered;
    this.#collectedCached += cached;
    counters.queries += fresh;
    counters.cached += cached;
    counters.local += fresh - cached;
    counters.kernel += fresh;
    counters.kernelCached += cached;
  }

  switched(): void {
    this.#memory.isRecording = this.#client.history.isEnabled;
  }

  /** The kernel has the last queries only. */
  read(): void {
    if (this.#isEnded) return;
    const { history } = this.#client;
    const next = history.lastSeq + 1;
    const skipped = this.#memory.takeRepeated((answer) => {
      history.tick(answer.atMs);
      history.note(this.#outcome.of(answer));
    });
    if (skipped > 0) history.skip(next, skipped);
  }

  /** The process answers everything from now on. */
  end(): void {
    const { history } = this.#client;
    this.collect();
    this.read();
    this.#isEnded = true;
    if (history.repeated === this) history.repeated = undefined;
    if (this.#client.repeater === this) this.#client.repeater = undefined;
  }

  #collectFailed(): void {
    const { counters, failures } = this.#client;
    this.#memory.takeFailed((answer, times) => {
      if (answer.rcode !== RCODE.NOERROR) counters[answer.rcode === RCODE.NXDOMAIN ? "nxdomain" : "errors"] += times;
      failures.note(this.#outcome.of(answer), times);
    });
  }
}

/** A query that the kernel has answered, as an outcome like that of any other. */
class RepeatedOutcome extends Outcome {
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
