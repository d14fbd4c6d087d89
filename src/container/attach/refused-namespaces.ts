/**
 * RefusedNamespaces: the namespace of each container that is not to be served, nor to be left to Docker's resolver: the keeper
 * refuses its queries.
 */
import type { Refusing } from "../../base/model/held-namespace.ts";
import type { NamespaceId } from "../namespace/namespace-runner.ts";

export class RefusedNamespaces {
  readonly #refusing: Refusing | undefined;
  readonly #byContainer = new Map<string, NamespaceId>();

  constructor(refusing: Refusing | undefined) {
    this.#refusing = refusing;
  }

  /** Returns whether the keeper has it, or is about to get it; a container that has started again has another one. */
  add(containerId: string, id: NamespaceId): boolean {
    const before = this.#byContainer.get(containerId);
    if (before === id) return true;
    if (before !== undefined) this.#refusing?.end(before);
    this.#byContainer.set(containerId, id);
    return this.#refusing?.goOn(id) === true;
  }

  /** It is served from now on, with what the keeper has. */
  delete(containerId: string): void {
    this.#byContainer.delete(containerId);
  }

  /** It may go back to Docker's resolver. */
  end(containerId: string): void {
    const id = this.#byContainer.get(containerId);
    this.#byContainer.delete(containerId);
    if (id !== undefined) this.#refusing?.end(id);
  }
}
