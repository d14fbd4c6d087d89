// Mutants: valid messages with random damage. The same seed damages a message in the same way in the test and in the upstream
// servers, so both resolvers get the same message, and a failure can be reproduced.

import type { UpstreamQuestion } from "../../support/servers/upstream-question.ts";
import { RAW_CASES, rawReply } from "./raw-replies.ts";

const HEADER_OCTETS = 12;
// Octets with a meaning in names and lengths.
const SPECIAL_OCTETS = [0x00, 0x01, 0x0c, 0x3f, 0x40, 0x80, 0xc0, 0xff];

// xorshift32.
export function randomSource(seed: number): (below: number) => number {
  let state = Math.imul(seed + 1, 0x9e3779b1) | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

// Makes one to three changes: an octet, a bit, or a part cut off, removed or duplicated. Octets before `from` stay.
export function mutated(message: Buffer, draw: (below: number) => number, from: number): Buffer {
  let octets: Buffer = Buffer.from(message);
  for (let left = 1 + draw(3); left > 0 && octets.length > from; left--) {
    const at = from + draw(octets.length - from);
    const length = 1 + draw(6);
    switch (draw(6)) {
      case 0:
        octets[at] = draw(256);
        break;
      case 1:
        octets[at] = SPECIAL_OCTETS[draw(SPECIAL_OCTETS.length)] ?? 0;
        break;
      case 2:
        octets[at] = (octets[at] ?? 0) ^ (1 << draw(8));
        break;
      case 3:
        octets = octets.subarray(0, at);
        break;
      case 4:
        octets = Buffer.concat([octets.subarray(0, at), octets.subarray(at + length)]);
        break;
      default:
        octets = Buffer.concat([octets.subarray(0, at + length), octets.subarray(at)]);
    }
  }
  return withoutIdPointers(octets, from);
}

// The ids of the two resolvers differ, so a name with a pointer into the id would differ, too.
function withoutIdPointers(octets: Buffer, from: number): Buffer {
  for (let at = octets.indexOf(0xc0, from); at !== -1; at = octets.indexOf(0xc0, at + 1)) {
    if ((octets[at + 1] ?? 2) < 2) octets[at + 1] = HEADER_OCTETS;
  }
  return octets;
}

// Without the cases with a known difference, which have questions of their own, and without silence.
const MUTABLE = RAW_CASES.filter(
  (name) => !/^(mx0|soa0|soashort|ds3|rrsigshort|signed|svcbemptyprotocol|nothing)$/.test(name),
);

// The id stays, because a reply without it matches no query.
export function mutantReply(question: UpstreamQuestion, seed: number): Buffer {
  const draw = randomSource(seed);
  const [good = Buffer.alloc(0)] = rawReply(question, MUTABLE[draw(MUTABLE.length)] ?? "plain");
  return mutated(good, draw, 2);
}
