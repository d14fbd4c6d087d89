/** Muted: the causes that somebody does not want to see. Kept for this tab, so that a reload does not bring them back. */
import { useCallback, useState } from "preact/hooks";

const STORED_AS = "dns11-muted";
const MUTED_MAX = 500;

export interface Muted {
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
