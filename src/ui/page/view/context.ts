/** Context: what panels share: the board, what is shown of it, and how they open each other. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";

import type { Board } from "../data/board.ts";
import type { Cell } from "../data/cell.ts";
import type { Failing, FailingEntry } from "../model/failing.ts";
import type { Scope } from "../model/scope.ts";

/** A question to explain. Each is a new object, so that the same one can be asked again. */
export interface Question {
  readonly container: string;
  readonly name: string;
  readonly type: string;
}

export interface PageContext {
  readonly board: Board;
  readonly scope: Scope;
  readonly failing: Failing;
  /** The part of what fails now that is not muted. */
  readonly shown: readonly FailingEntry[];
  readonly mute: (key: string) => void;
  readonly unmuteAll: () => void;
  readonly question: Cell<Question | null>;
  /** Explains a name and shows the result. */
  readonly explain: (container: string, name: string, type?: string) => void;
  /** Opens a container's drawer, by its name or ID. */
  readonly open: (container: string) => void;
}

export const Page = createContext<PageContext | null>(null);

export function usePage(): PageContext {
  const page = useContext(Page);
  if (page === null) throw new Error("a panel outside of the page");
  return page;
}
