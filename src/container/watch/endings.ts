/**
 * Endings: how containers end, from their events: with which exit code, and whether somebody had asked the engine to end them. A program
 * that is stopped often ends with an exit code other than 0, which alone looks like a crash.
 */
import type { EngineEvent } from "./engine-json.ts";

export interface Ending {
  /** Undefined if the engine did not report one. */
  readonly exitCode: number | undefined;
  /** Somebody stopped, killed or removed the container. */
  readonly isAsked: boolean;
}

/** SIGINT, SIGQUIT, SIGKILL and SIGTERM. Others, such as SIGHUP, usually ask a program for something else. */
const ENDING_SIGNALS: ReadonlySet<number> = new Set([2, 3, 9, 15]);
/** A program that a signal ends has the exit code of the signal and this. */
const BY_SIGNAL = 128;

export class Endings {
  readonly #exitCodes = new Map<string, number>();
  /** The last signal that the engine was asked to send. */
  readonly #signals = new Map<string, number>();

  /** An event of a container, which is forgotten when its ending is taken. */
  note({ Action: action, Actor: actor }: EngineEvent): void {
    const { ID: id, Attributes: attributes = {} } = actor ?? {};
    if (id === undefined) return;
    if (action === "start") this.#signals.delete(id);
    if (action === "kill") this.#signals.set(id, Number(attributes["signal"]));
    if (action === "die") this.#exitCodes.set(id, Number(attributes["exitCode"]));
  }

  /** The container runs again. */
  forgetExit(id: string): void {
    this.#exitCodes.delete(id);
  }

  /** From events first, because a container that is removed at its end cannot be inspected. */
  take(id: string, inspected: number | undefined): Ending {
    const code = this.#exitCodes.get(id) ?? inspected;
    const signal = this.#signals.get(id);
    this.#exitCodes.delete(id);
    this.#signals.delete(id);
    const exitCode = Number.isInteger(code) ? code : undefined;
    const isAsked = signal !== undefined && (ENDING_SIGNALS.has(signal) || exitCode === BY_SIGNAL + signal);
    return { exitCode, isAsked };
  }
}
