/**
 * RuleSet: the rules and tapes for one choice of containers. Its clients share it, so a thousand rules for a thousand containers
 * are stored once.
 */
import type { QuestionName } from "../../base/model/visible-names.ts";
import { PatternIndex } from "../../base/model/pattern-index.ts";
import type { Rule } from "./rule.ts";
import { Tape } from "./tape.ts";

export class RuleSet {
  readonly #rules = new PatternIndex<Rule>();
  /** Rules that deny everything but some names. */
  readonly hermetic: Rule[] = [];
  /** They record what is answered. */
  readonly tapes = new Set<Tape>();

  get isEmpty(): boolean {
    return this.#rules.isEmpty && this.hermetic.length === 0 && this.tapes.size === 0;
  }

  add(entry: Rule | Tape): void {
    if (entry instanceof Tape) this.tapes.add(entry);
    else if (entry.action.kind === "only") this.hermetic.push(entry);
    else this.#rules.add(entry.pattern, entry);
  }

  remove(entry: Rule | Tape): void {
    if (entry instanceof Tape) {
      this.tapes.delete(entry);
      return;
    }
    if (entry.action.kind !== "only") return this.#rules.remove(entry.pattern, (each) => each === entry);
    const at = this.hermetic.indexOf(entry);
    if (at !== -1) this.hermetic.splice(at, 1);
  }

  /** The rules for a name. */
  find(name: QuestionName): readonly Rule[] {
    return this.#rules.find(name);
  }
}
