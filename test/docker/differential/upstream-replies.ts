// UpstreamReplies: what the upstream servers reply, by the suffix of the name:
//
//   W0.W1.W2.W3.*.ladder.test   the server with index N behaves as the word WN says
//   CASE.raw.test               the reply of that name in raw-replies.ts, from every server
//   SEED.mutant.test            a reply with random damage, from every server; the seed decides which
//   all others                  as in upstream-answer.ts

import { replyTo } from "../../support/servers/upstream-answer.ts";
import type { UpstreamQuestion } from "../../support/servers/upstream-question.ts";
import { mutantReply } from "./mutant.ts";
import { rawReply } from "./raw-replies.ts";

export type UpstreamReplies = { readonly replies: readonly Buffer[]; readonly delayMs: number };

const AA = 0x0400;

export function upstreamReplies(question: UpstreamQuestion, server: number): UpstreamReplies {
  const labels = question.name.toLowerCase().split(".");
  const [first = ""] = labels;
  switch (labels.slice(-2).join(".")) {
    case "ladder.test":
      return ladderReply(question, labels[server] ?? "", server);
    case "raw.test":
      return now(...rawReply(question, first));
    case "mutant.test":
      return now(mutantReply(question, Number(first)));
    default:
      return usual(question);
  }
}

function ladderReply(question: UpstreamQuestion, word: string, server: number): UpstreamReplies {
  const like = (kind: string): UpstreamReplies => usual({ ...question, name: `x${server + 1}.${kind}.test` });
  const rcode = (value: number): UpstreamReplies => withWord(like("nodata"), (flags) => flags | value);
  const ok = like("ok");
  switch (word) {
    case "nxaa":
      return withWord(like("nx"), (flags) => flags | AA);
    case "formerr":
      return rcode(1);
    case "notimp":
      return rcode(4);
    case "yxdomain":
      return rcode(6);
    case "notauth":
      return rcode(9);
    case "rcode15":
      return rcode(15);
    case "short":
      return now(Buffer.from(ok.replies[0] ?? []).subarray(0, 7));
    case "empty":
      return now(Buffer.alloc(0));
    case "cut":
      return now(...ok.replies.map((reply) => reply.subarray(0, -2)));
    case "strayfirst":
      return now(...usual({ ...question, id: question.id ^ 0xffff }).replies, ...ok.replies);
    case "straygarbage":
      return now(Buffer.alloc(40, 0xff), ...ok.replies);
    case "twice":
      return now(...ok.replies, ...like("nx").replies);
    case "late":
      return { ...ok, delayMs: 1_000 };
    case "toolate":
      return { ...ok, delayMs: 4_800 };
    default:
      return like(word);
  }
}

function usual(question: UpstreamQuestion): UpstreamReplies {
  const reply = replyTo(question);
  return reply === undefined ? now() : { replies: [reply.message], delayMs: reply.delayMs };
}

function withWord({ replies }: UpstreamReplies, change: (flags: number) => number): UpstreamReplies {
  return now(
    ...replies.map((reply) => {
      const octets = Buffer.from(reply);
      octets.writeUInt16BE(change(octets.readUInt16BE(2)), 2);
      return octets;
    }),
  );
}

function now(...replies: readonly Buffer[]): UpstreamReplies {
  return { replies, delayMs: 0 };
}
