/**
 * NodeVersion: whether this Node can run dns11. An older one fails at the first function that it does not have, so this is checked before
 * anything else is loaded, and uses no new function.
 */
const NEEDED = 20;

/** The message for a Node that is too old. */
export function oldNodeText(
  version: string = process.versions.node,
  path: string = process.execPath,
): string | undefined {
  if (Number.parseInt(version, 10) >= NEEDED) return undefined;
  return `Node ${NEEDED} or later is needed, and ${path} is ${version}. The packages of a release bring a Node of their own.`;
}
