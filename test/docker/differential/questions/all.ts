// All questions about the project in its initial state.

import type { Project } from "../project.ts";
import type { Question } from "../question.ts";
import { flagQuestions } from "./flags.ts";
import { malformedQuestions } from "./malformed.ts";
import { mutantQuestions } from "./mutants.ts";
import { nameQuestions } from "./names.ts";
import { reverseQuestions } from "./reverse.ts";
import { streamQuestions } from "./streams.ts";
import { upstreamQuestions } from "./upstream.ts";

export function allQuestions(project: Project): Question[] {
  const questions = [
    ...nameQuestions(project),
    ...reverseQuestions(project),
    ...flagQuestions(),
    ...malformedQuestions(),
    ...mutantQuestions(),
    ...upstreamQuestions(),
    ...streamQuestions(),
  ];
  // Several spellings of a name may be the same.
  return [...new Map(questions.map((question) => [keyOf(question), question])).values()];
}

function keyOf({ from, transport, label, messages }: Question): string {
  const octets = Buffer.concat(messages).toString("hex");
  return `${from} ${transport} ${label} ${octets}`;
}
