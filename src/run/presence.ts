/**
 * Presence: what only one process of an instance has at a time, and by which others find it: the lock, the control socket,
 * the pages by TCP, and the black box. A run that is being replaced leaves it before its successor comes.
 */
import type { Instance } from "./instance.ts";
import type { Control } from "../control/socket.ts";

export interface PresenceParts {
  /** Throws where somebody else has it. */
  readonly takeInstance: () => Instance;
  readonly openControl: (path: string) => Promise<Control>;
  readonly openPages: () => Promise<void>;
  readonly closePages: () => void;
  readonly openBox: () => void;
  readonly closeBox: () => void;
}

export class Presence {
  readonly #parts: PresenceParts;
  #instance: Instance | undefined;
  #control: Control | undefined;

  constructor(parts: PresenceParts) {
    this.#parts = parts;
  }

  get controlPath(): string | undefined {
    return this.#instance?.controlPath;
  }

  /** Throws a Fault where somebody else is there; then nothing of it is ours. */
  async take(): Promise<void> {
    const { takeInstance, openControl, openPages, openBox } = this.#parts;
    this.#instance = takeInstance();
    try {
      openBox();
      await openPages();
      this.#control = await openControl(this.#instance.controlPath);
    } catch (error) {
      this.leave();
      throw error;
    }
  }

  leave(): void {
    this.#control?.close();
    this.#control = undefined;
    this.#parts.closePages();
    if (this.#instance === undefined) return;
    this.#parts.closeBox();
    this.#instance.release();
    this.#instance = undefined;
  }
}
