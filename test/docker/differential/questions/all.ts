// Owns the list of all questions that are asked of the project as it was started.

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
  // Some names are written alike in several ways.
  return [...new Map(questions.map((question) => [keyOf(question), question])).values()];
}

function keyOf({ from, transport, label, messages }: Question): string {
  const asked = Buffer.concat(messages).toString("hex");
  return `${from} ${transport} ${label} ${asked}`;
}
