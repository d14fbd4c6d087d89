/**
 * DeclaredSet: the declared names of all files together. Names are added file by file, and a file whose names contradict
 * those before is refused as a whole: a name that is declared twice in a scope, or CNAMEs that form a loop.
 */
import { LIMITS } from "../../base/limits.ts";
import { type DeclaredName, EVERYBODY, type RecordScope, scopeText } from "../../base/model/declared-name.ts";

export class DeclaredSet {
  #names = new Map<string, DeclaredName>();

  get names(): readonly DeclaredName[] {
    return [...this.#names.values()];
  }

  /** Adds all, or nothing if there are mistakes, which it returns, each with file and line. */
  add(names: readonly DeclaredName[]): readonly string[] {
    const before = this.#names;
    this.#names = new Map(before);
    const mistakes = names.flatMap((each) => this.#put(each) ?? []);
    const total = this.#names.size;
    if (total > LIMITS.declaredNames) {
      mistakes.push(`${names[0]?.where ?? ""}: makes ${total} declared names: use at most ${LIMITS.declaredNames}`);
    }
    mistakes.push(...names.flatMap((each) => this.#loopOf(each) ?? []));
    if (mistakes.length > 0) this.#names = before;
    return mistakes;
  }

  #put(added: DeclaredName): string | undefined {
    const key = keyOf(added.scope, added.name);
    const known = this.#names.get(key);
    if (known !== undefined && added.isDerived === true) return undefined;
    if (known === undefined || known.isDerived === true) {
      this.#names.set(key, added);
      return undefined;
    }
    return (
      `${added.where}: ${added.name}: is declared twice for ${scopeText(added.scope)}, also at ${known.where}: ` +
      "put all its records in one place"
    );
  }

  /** Follows the CNAMEs of a name: returns the mistake if they lead back, or too far. */
  #loopOf(start: DeclaredName): string | undefined {
    const chain = [start.name];
    for (let current = start; current.alias !== undefined;) {
      const name = current.alias.toLowerCase();
      const next = this.#find(start.scope, name);
      if (next === undefined) return undefined;
      const isLoop = chain.includes(next.name);
      chain.push(next.name);
      if (isLoop || chain.length > LIMITS.declaredAliases) {
        const what = isLoop ? "its CNAMEs form a loop" : `has more than ${LIMITS.declaredAliases} CNAMEs in a row`;
        return `${start.where}: ${start.name}: ${what} (${chain.join(" -> ")}): point the last one somewhere else`;
      }
      current = next;
    }
    return undefined;
  }

  /** As a container in this scope would find it: the exact name, then the longest wildcard. */
  #find(scope: RecordScope, name: string): DeclaredName | undefined {
    for (const each of scope.kind === "everybody" ? [EVERYBODY] : [scope, EVERYBODY]) {
      const exact = this.#names.get(keyOf(each, name));
      if (exact !== undefined) return exact;
      for (let dot = name.indexOf("."); dot !== -1; dot = name.indexOf(".", dot + 1)) {
        const wildcard = this.#names.get(keyOf(each, `*${name.slice(dot)}`));
        if (wildcard !== undefined) return wildcard;
      }
    }
    return undefined;
  }
}

function keyOf({ kind, name: scope }: RecordScope, name: string): string {
  return `${kind} ${scope} ${name}`;
}
