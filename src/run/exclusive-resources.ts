/**
 * ExclusiveResources: what only one process of an instance can have at a time: the lock, the control socket, the HTTP
 * listener, and the crash recorder. A run that is being replaced releases them before the new process takes them.
 */
import type { Instance } from "./instance.ts";
import type { ControlSocket } from "../control/server/http.ts";

interface ExclusiveResourcesParts {
  /** Throws if another process holds the lock. */
  readonly takeInstance: () => Instance;
  readonly openControl: (path: string) => Promise<ControlSocket>;
  readonly openMetrics: () => Promise<void>;
  readonly closeMetrics: () => void;
  readonly startRecorder: () => void;
  readonly closeRecorder: () => void;
}

export class ExclusiveResources {
  readonly #parts: ExclusiveResourcesParts;
  #instance: Instance | undefined;
  #control: ControlSocket | undefined;

  constructor(parts: ExclusiveResourcesParts) {
    this.#parts = parts;
  }

  get controlPath(): string | undefined {
    return this.#instance?.controlPath;
  }

  /** Throws a Fault if another process holds the lock, or one of them cannot be opened; nothing is taken then. */
  async acquire(): Promise<void> {
    try {
      this.takeLock();
      await this.open();
    } catch (error) {
      this.release();
      throw error;
    }
  }

  /** Throws a Fault if another process holds the lock. */
  takeLock(): void {
    this.#instance = this.#parts.takeInstance();
    this.#parts.startRecorder();
  }

  /** Opens what is not open, as long as the lock is held. Throws if it cannot; the lock is kept. */
  async open(): Promise<void> {
    const instance = this.#instance;
    if (instance === undefined) return;
    try {
      this.#control ??= await this.#parts.openControl(instance.controlPath);
      await this.#parts.openMetrics();
    } finally {
      // The run may have ended meanwhile.
      if (this.#instance !== instance) this.release();
    }
  }

  release(): void {
    this.#control?.close();
    this.#control = undefined;
    this.#parts.closeMetrics();
    if (this.#instance === undefined) return;
    this.#parts.closeRecorder();
    this.#instance.release();
    this.#instance = undefined;
  }
}
