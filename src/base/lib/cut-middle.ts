/**
 * CutMiddle: a text that is too long without its middle: `acme-plat…-worker-1`. Names of one project begin alike and differ at
 * their ends, so the end keeps more of the room.
 */

/** What is kept of the beginning, as a share of the room. */
const HEAD = 0.4;

export function cutMiddle(text: string, max: number, mark = "…"): string {
  if (text.length <= max) return text;
  // Half of a character outside of the Basic Multilingual Plane is none.
  const characters = [...text];
  if (characters.length <= max) return text;
  const room = max - mark.length;
  if (room < 2) return characters.slice(0, Math.max(0, max)).join("");
  const head = Math.floor(room * HEAD);
  return [...characters.slice(0, head), mark, ...characters.slice(head - room)].join("");
}
