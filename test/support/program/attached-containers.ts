/**
 * AttachedContainers: which containers are attached, as the program counts changes of state. Whoever waits for them is woken by a
 * change: one that looked again and again would be measured with them.
 */
import { type AttachmentState, failureText } from "../../../src/container/attach/attachment-state.ts";
import { ContainerMetrics } from "../../../src/metrics/container-metrics.ts";

// On the busiest machine.
const ATTACH_MS_MAX = 180_000;

export class AttachedContainers extends ContainerMetrics {
  readonly #attached = new Set<string>();
  #failure: string | undefined;
  #changed = (): void => undefined;

  constructor() {
    super(0);
  }

  override onState(containerId: string, state: AttachmentState): boolean {
    if (state.kind === "attached") this.#attached.add(containerId);
    else this.#attached.delete(containerId);
    if (state.kind === "failed") this.#failure = failureText(state);
    this.#changed();
    return super.onState(containerId, state);
  }

  /** Resolves when so many are attached. */
  async until(count: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const end = (error?: Error): void => {
        clearTimeout(timer);
        this.#changed = () => undefined;
        if (error === undefined) resolve();
        else reject(error);
      };
      const timer = setTimeout(
        () => end(new Error(`only ${this.#attached.size} of ${count} were attached in time`)),
        ATTACH_MS_MAX,
      );
      this.#changed = () => {
        if (this.#failure !== undefined) end(new Error(`not attached: ${this.#failure}`));
        else if (this.#attached.size === count) end();
      };
      this.#changed();
    });
  }
}
