/**
 * PlainName: a name that every shell takes as it is. The engine accepts no other for a container, but labels can claim any text
 * as a service or a project.
 */
const PLAIN_NAME = /^[a-zA-Z0-9][\w.-]*$/;

export function isPlainName(text: string): boolean {
  return PLAIN_NAME.test(text);
}
