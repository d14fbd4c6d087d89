/**
 * EtcdKeys: what etcd has below the prefix, as the names and the members of services that it means.
 */
import type { StoredKey, StoredKeys } from "../../base/model/stored-key.ts";
import type { StoredNames } from "../../container/names/etcd/stored-names.ts";
import type { RemoteMembers } from "../../container/names/zone/remote-members.ts";

export class EtcdKeys implements StoredKeys {
  readonly #names: StoredNames;
  readonly #remote: RemoteMembers | undefined;
  /** A key of this machine has this value now; undefined: it is deleted. */
  onOwnKey: (key: string, value: string | undefined) => void = () => {};

  constructor(names: StoredNames, remote: RemoteMembers | undefined) {
    this.#names = names;
    this.#remote = remote;
  }

  /** Too many names leave the containers of other machines their room. */
  after(key: string): string | undefined {
    const remote = this.#remote;
    if (remote?.takes(key) === true) return remote.after(key);
    return this.#names.after(key) ?? (remote !== undefined && key < remote.prefix ? remote.prefix : undefined);
  }

  begin(): void {
    this.#names.begin();
    this.#remote?.begin();
  }

  commit(): void {
    this.#names.commit();
    this.#remote?.commit();
  }

  put(stored: StoredKey): void {
    this.#of(stored.key).put(stored);
    if (this.#remote?.isOwn(stored.key) === true) this.onOwnKey(stored.key, stored.value?.toString("latin1") ?? "");
  }

  remove(key: string): void {
    this.#of(key).remove(key);
    if (this.#remote?.isOwn(key) === true) this.onOwnKey(key, undefined);
  }

  setLease(lease: string, ttlSeconds: number): void {
    this.#names.setLease(lease, ttlSeconds);
  }

  setCurrent(isCurrent: boolean): void {
    this.#names.setCurrent(isCurrent);
    this.#remote?.setCurrent(isCurrent);
  }

  #of(key: string): StoredKeys {
    return this.#remote?.takes(key) === true ? this.#remote : this.#names;
  }
}
