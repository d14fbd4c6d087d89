/**
 * PolicyFile: the policies of a settings file, such as `dns11 policy learn` prints. What they say is read by the dns11 that gets them.
 */
import { readFileSync } from "node:fs";

import { Fault } from "../../src/base/lib/fault.ts";
import { readDocument } from "../../src/config/file/document.ts";

export function policiesIn(file: string): Readonly<Record<string, object>> {
  let text;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new Fault("BAD_POLICY", `"${file}" cannot be read`, {
      remedy: "Name a file as `dns11 policy learn` prints it.",
      cause: error,
    });
  }
  const document = readDocument(text);
  const { policies } = (document.value ?? {}) as { readonly policies?: Readonly<Record<string, object>> };
  if (document.mistakes.length > 0 || policies === undefined)
    throw new Fault("BAD_POLICY", `"${file}" has no policies that can be read`, {
      remedy: `Check it with: dns11 check-config ${file}`,
    });
  return policies;
}
