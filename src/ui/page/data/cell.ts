/** Cell: one value of the page's state, and who draws it. Setting it draws those again, at most once a frame. */
import { useLayoutEffect, useState } from "preact/hooks";

export class Cell<T> {
  #value: T;
  readonly #watchers = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const each of this.#watchers) each();
  }

  watch(onChange: () => void): () => void {
    this.#watchers.add(onChange);
    return () => void this.#watchers.delete(onChange);
  }
}

/** The value of a cell; the component is drawn again when it changes. */
export function useCell<T>(cell: Cell<T>): T {
  const [, setDrawn] = useState(0);
  const drawn = cell.value;
  useLayoutEffect(() => {
    const onChange = (): void => setDrawn((times) => times + 1);
    // It may have changed between drawing and watching.
    if (!Object.is(cell.value, drawn)) onChange();
    return cell.watch(onChange);
  }, [cell]);
  return drawn;
}
