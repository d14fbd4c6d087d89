// In messages of etcd's gateway numbers of 64 bits are strings, bytes are base64, and whatever is zero or empty is left out. What has
// another form than expected reads as missing.

/** A key of the store with its value. */
export interface StoredKey {
  /** One character per byte. */
  readonly key: string;
  /** Undefined where it is too large to be read. */
  readonly value: Buffer | undefined;
  /** The lease that it ends with; undefined for none. */
  readonly lease: string | undefined;
  /** The revision of the store at the key's last change. */
  readonly revision?: number;
}

export interface Page {
  readonly revision: number;
  readonly keys: readonly StoredKey[];
  readonly hasMore: boolean;
}

export interface WatchMessage {
  readonly revision: number;
  readonly isCreated: boolean;
  /** Further messages have the rest of the same revision. */
  readonly isFragment: boolean;
  readonly isCanceled: boolean;
  readonly cancelReason: string;
  /** What was to be watched from is gone; 0 where it is not. */
  readonly compactRevision: number;
  readonly events: readonly StoredEvent[];
}

interface StoredEvent {
  readonly isDelete: boolean;
  readonly stored: StoredKey;
}

type Json = Readonly<Record<string, unknown>>;

export function readPage(reply: unknown): Page {
  const json = objectOf(reply);
  return {
    revision: revisionOf(json),
    keys: listOf(json["kvs"]).flatMap((each) => readKey(each) ?? []),
    hasMore: json["more"] === true,
  };
}

/** The revision of the store in any reply. */
export function revisionOf(reply: unknown): number {
  return numberOf(objectOf(objectOf(reply)["header"])["revision"]);
}

export function readWatchMessage(message: unknown): WatchMessage | undefined {
  const result = objectOf(message)["result"];
  if (result === undefined) return undefined;
  const json = objectOf(result);
  return {
    revision: revisionOf(json),
    isCreated: json["created"] === true,
    isFragment: json["fragment"] === true,
    isCanceled: json["canceled"] === true,
    cancelReason: textOf(json["cancel_reason"]),
    compactRevision: numberOf(json["compact_revision"]),
    events: listOf(json["events"]).flatMap((each) => readEvent(each) ?? []),
  };
}

function readEvent(value: unknown): StoredEvent | undefined {
  const event = objectOf(value);
  const stored = readKey(event["kv"]);
  return stored && { isDelete: event["type"] === "DELETE", stored };
}

function readKey(value: unknown): StoredKey | undefined {
  const json = objectOf(value);
  const { key, lease } = json;
  if (typeof key !== "string") return undefined;
  return {
    key: Buffer.from(key, "base64").toString("latin1"),
    value: Buffer.from(textOf(json["value"]), "base64"),
    lease: typeof lease === "string" && lease !== "0" ? lease : undefined,
    revision: numberOf(json["mod_revision"]),
  };
}

/** The text of the first stream message that is an error. */
export function streamError(message: unknown): { readonly code: number; readonly message: string } | undefined {
  const { error } = objectOf(message);
  if (error === undefined) return undefined;
  const json = objectOf(error);
  return { code: Number(json["grpc_code"] ?? json["code"] ?? 0), message: textOf(json["message"]) };
}

export function encoded(text: string): string {
  return Buffer.from(text, "latin1").toString("base64");
}

export function objectOf(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Revisions stay far below 2^53. */
export function numberOf(value: unknown): number {
  const number = Number(value ?? 0);
  return Number.isSafeInteger(number) && number >= 0 ? number : 0;
}
