/** Context: what panels share: the board, what is shown of it, and how they open each other. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";

import type { Board } from "../data/board.ts";
import type { Cell } from "../data/cell.ts";
import type { Failing, FailingEntry } from "../model/failing.ts";
import type { RangeKey } from "../model/past.ts";
import type { Scope } from "../model/scope.ts";

/** Where a question was asked: its explanation is shown there. */
export type ExplainPlace = "ask" | "drawer" | "earlier" | "failing" | "live" | "others" | "visibility";

/** A question to explain. Each is a new object, so that the same one can be asked again. */
export interface Question {
  readonly place: ExplainPlace;
  readonly container: string;
  readonly name: string;
  readonly type: string;
  /** Of a list: the key of the line that it is about. */
  readonly row?: number;
}

export interface PageContext {
  readonly board: Board;
  readonly scope: Scope;
  readonly failing: Failing;
  /** The part of what fails now that is not muted. */
  readonly shown: readonly FailingEntry[];
  readonly mute: (key: string) => void;
  readonly unmuteAll: () => void;
  /** How far back the page looks. */
  readonly range: RangeKey;
  readonly setRange: (range: RangeKey) => void;
  readonly question: Cell<Question | null>;
  /** Explains a name and shows the result where it was asked for, instead of an earlier one. */
  readonly explain: (question: Question) => void;
  readonly closeExplanation: () => void;
  /** Opens a container's drawer, by its name or ID. */
  readonly open: (container: string) => void;
}

export const Page = createContext<PageContext | null>(null);

export function usePage(): PageContext {
  const page = useContext(Page);
  if (page === null) throw new Error("a panel outside of the page");
  return page;
}
