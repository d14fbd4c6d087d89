/**
 * JsonObject: the fields of a JSON object that somebody else wrote. The errors are sentences about the value, for whoever
 * can correct it.
 */

/** Throws an Error with the reason. */
export function jsonObject(value: Buffer): Readonly<Record<string, unknown>> {
  let json: unknown;
  try {
    json = JSON.parse(value.toString());
  } catch {
    throw new Error("it is not valid JSON");
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) throw new Error("it is not a JSON object");
  return json as Record<string, unknown>;
}
