// Mutex: runs one task at a time, in the order of the calls.

export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return await done;
  }
}
