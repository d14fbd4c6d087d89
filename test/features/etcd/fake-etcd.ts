// What a publisher uses of etcd, in memory: keys with revisions, transactions, and leases on a clock that the test moves.

import type { Fault } from "../../../src/base/lib/fault.ts";
import { reportedFault } from "../../../src/features/etcd/client/faults.ts";

interface Stored {
  readonly value: string;
  readonly lease: string | undefined;
  readonly created: number;
  readonly revision: number;
}

type Json = Readonly<Record<string, unknown>>;

export class FakeEtcd {
  readonly localAddress = "192.0.2.1";
  readonly keys = new Map<string, Stored>();
  readonly leases = new Map<string, { readonly seconds: number; endsMs: number }>();
  readonly calls: { readonly path: string; readonly operations: number }[] = [];
  revision = 1;
  nowMs = 0;
  // What the next calls of a path fail with.
  readonly failures = new Map<string, Fault>();
  // Called after each list: another writer may be faster.
  onListed: () => void = () => undefined;
  #leases = 100;

  // Time passes, and leases end.
  pass(ms: number): void {
    this.nowMs += ms;
    for (const [id, { endsMs }] of this.leases) if (endsMs <= this.nowMs) this.revoke(id);
  }

  revoke(id: string): void {
    this.leases.delete(id);
    for (const [key, { lease }] of this.keys) if (lease === id) this.keys.delete(key);
    this.revision++;
  }

  put(key: string, value: string, lease?: string): void {
    const created = this.keys.get(key)?.created ?? ++this.revision;
    this.keys.set(key, { value, lease, created, revision: ++this.revision });
  }

  // Values below a prefix, by the rest of the key.
  values(prefix: string): Readonly<Record<string, string>> {
    const found = [...this.keys].filter(([key]) => key.startsWith(prefix));
    return Object.fromEntries(found.map(([key, { value }]) => [key.slice(prefix.length), value]));
  }

  async call(path: string, body: object): Promise<unknown> {
    const json = body as Json;
    this.calls.push({ path, operations: ((json["success"] ?? []) as unknown[]).length });
    await Promise.resolve();
    const failure = this.failures.get(path);
    if (failure !== undefined) throw failure;
    const reply = { header: { revision: String(this.revision) }, ...this.#answer(path, json) };
    if (path === "/v3/kv/range") this.onListed();
    return reply;
  }

  #answer(path: string, body: Json): object {
    const id = String(body["ID"]);
    const lease = this.leases.get(id);
    switch (path) {
      case "/v3/lease/grant": {
        const [seconds, granted] = [Number(body["TTL"]), String(this.#leases++)];
        this.leases.set(granted, { seconds, endsMs: this.nowMs + seconds * 1000 });
        return { ID: granted };
      }
      case "/v3/lease/keepalive":
        if (lease !== undefined) lease.endsMs = this.nowMs + lease.seconds * 1000;
        return { result: { ID: id, ...(lease && { TTL: String(lease.seconds) }) } };
      case "/v3/lease/timetolive":
        return lease === undefined ? { TTL: "-1" } : { TTL: "1", grantedTTL: String(lease.seconds) };
      case "/v3/lease/revoke":
        this.revoke(id);
        return {};
      case "/v3/kv/range":
        return this.#range(body);
      case "/v3/kv/txn":
        return this.#transaction(body);
      default:
        throw new Error(`unexpected ${path}`);
    }
  }

  #range(body: Json): object {
    const [from, to] = [plain(body["key"]), body["range_end"] === undefined ? undefined : plain(body["range_end"])];
    const found = [...this.keys]
      .filter(([key]) => (to === undefined ? key === from : key >= from && key < to))
      .toSorted(([a], [b]) => (a < b ? -1 : 1));
    const limit = Number(body["limit"] ?? 0) || found.length;
    const kvs = found.slice(0, limit).map(([key, { value, lease, revision }]) => ({
      key: Buffer.from(key).toString("base64"),
      value: Buffer.from(value).toString("base64"),
      mod_revision: String(revision),
      lease,
    }));
    return { kvs, more: found.length > limit };
  }

  #transaction(body: Json): object {
    const list = (key: string): readonly Json[] => (body[key] ?? []) as readonly Json[];
    if (Math.max(list("compare").length, list("success").length) > 128) throw new Error("too many operations");
    const holds = list("compare").every(
      ({ key, mod_revision }) => (this.keys.get(plain(key))?.revision ?? 0) === Number(mod_revision),
    );
    const operations = list(holds ? "success" : "failure");
    for (const { request_put: put } of operations as readonly { readonly request_put?: Json }[])
      if (put?.["lease"] !== undefined && !this.leases.has(put["lease"] as string))
        throw reportedFault("fake", 5, "etcdserver: requested lease not found");
    if (holds) this.revision++;
    const responses = operations.map((operation) => this.#operation(operation));
    return { header: { revision: String(this.revision) }, succeeded: holds, responses };
  }

  #operation({ request_put: put, request_delete_range: remove, request_range: range }: Json): object {
    if (put !== undefined) {
      const { key, value, lease } = put as Json;
      const created = this.keys.get(plain(key))?.created ?? this.revision;
      this.keys.set(plain(key), {
        value: plain(value),
        lease: lease as string | undefined,
        created,
        revision: this.revision,
      });
    }
    if (remove !== undefined) this.keys.delete(plain((remove as Json)["key"]));
    return range === undefined ? {} : { response_range: this.#range(range as Json) };
  }
}

function plain(encoded: unknown): string {
  return Buffer.from(String(encoded), "base64").toString();
}
