/** Hooks: the time, what is read again and again, the width of an element, and moving the focus with the arrow keys. */
import type { RefObject } from "preact";
import { useLayoutEffect, useState, useCallback } from "preact/hooks";

/** Returns the present time, again and again. */
export function useNow(everyMs: number): number {
  const [nowMs, setNowMs] = useState(Date.now());
  useLayoutEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return nowMs;
}

/** Passes on what is read, now and so long after each time. Returns what ends it, for an effect: nothing is passed on after that. */
export function repeatedly<T>(everyMs: number, read: () => Promise<T>, pass: (found: T) => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOpen = true;
  const look = async (): Promise<void> => {
    const found = await read();
    if (!isOpen) return;
    pass(found);
    timer = setTimeout(() => void look(), everyMs);
  };
  void look();
  return () => {
    isOpen = false;
    clearTimeout(timer);
  };
}

export function useWidth(of: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = of.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    observer.observe(element);
    setWidth(Math.floor(element.clientWidth));
    return () => observer.disconnect();
  }, []);
  return width;
}

const STEPS: Readonly<Record<string, (columns: number) => number>> = {
  ArrowLeft: () => -1,
  ArrowRight: () => 1,
  ArrowUp: (columns) => -columns,
  ArrowDown: (columns) => columns,
  Home: () => -Infinity,
  End: () => Infinity,
};

/**
 * Of the elements with `data-stop`, one is reached with Tab and the others with the arrow keys, so that a table with 1,000 cells is one
 * stop on the way through the page.
 */
export function moveFocus(event: KeyboardEvent, columns = 1): void {
  const step = STEPS[event.key]?.(columns);
  const [target, area] = [event.target, event.currentTarget];
  if (step === undefined || !(target instanceof Element) || !(area instanceof Element)) return;
  const stops = [...area.querySelectorAll<HTMLElement | SVGElement>("[data-stop]")];
  const from = stops.findIndex((each) => each === target);
  if (from === -1) return;
  event.preventDefault();
  const to = stops[Math.min(stops.length - 1, Math.max(0, from + step))];
  for (const each of stops) each.setAttribute("tabindex", each === to ? "0" : "-1");
  to?.focus();
}

/** Of `moveFocus`: the first one is reached with Tab. In lower case, as attributes of SVG must be. */
export function stop(isFirst: boolean): { readonly "data-stop": true; readonly tabindex: number } {
  return { "data-stop": true, tabindex: isFirst ? 0 : -1 };
}

const STORED_AS = "dns11-muted";
const MUTED_MAX = 500;

/** The causes that somebody does not want to see. Kept for this tab, so that a reload does not bring them back. */
interface Muted {
  readonly keys: ReadonlySet<string>;
  readonly mute: (key: string) => void;
  readonly unmuteAll: () => void;
}

export function useMuted(): Muted {
  const [keys, setKeys] = useState<ReadonlySet<string>>(() => new Set(stored()));
  const set = useCallback((next: ReadonlySet<string>): void => {
    setKeys(next);
    try {
      sessionStorage.setItem(STORED_AS, JSON.stringify([...next]));
    } catch {
      // Without storage they are forgotten at a reload.
    }
  }, []);
  const mute = useCallback((key: string) => set(new Set([...keys, key].slice(-MUTED_MAX))), [keys, set]);
  const unmuteAll = useCallback(() => set(new Set()), [set]);
  return { keys, mute, unmuteAll };
}

function stored(): string[] {
  try {
    return JSON.parse(sessionStorage.getItem(STORED_AS) ?? "[]") as string[];
  } catch {
    return [];
  }
}
