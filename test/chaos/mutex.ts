// One thing at a time, in the order in which it was asked for.

export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return await done;
  }
}
