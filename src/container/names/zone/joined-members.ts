/**
 * JoinedMembers: the members of services on all machines: those of this machine, and those that others publish in etcd. The
 * first come first.
 */
import { type AddressHolder, EVERY, type MemberPlace, type MemberSet, type ZoneMember } from "./member.ts";
import type { RemoteMembers } from "./remote-members.ts";

export class JoinedMembers implements MemberSet {
  readonly #own: MemberSet;
  readonly #remote: RemoteMembers;

  constructor(own: MemberSet, remote: RemoteMembers) {
    this.#own = own;
    this.#remote = remote;
  }

  *groups(place: MemberPlace): Iterable<Iterable<ZoneMember>> {
    yield* this.#own.groups(place);
    yield* this.#remote.members.groups(place);
  }

  *services(): Iterable<readonly ZoneMember[]> {
    const seen = new Set<string>();
    const key = ({ project, service }: ZoneMember): string => `${project}/${service}`;
    for (const own of this.#own.services()) {
      const [first] = own;
      if (first === undefined) continue;
      seen.add(key(first));
      const { project, service } = first;
      const others = [...this.#remote.members.groups({ project, service, host: EVERY })];
      yield [...own, ...others.flatMap((group) => [...group])];
    }
    for (const others of this.#remote.members.services())
      if (others[0] !== undefined && !seen.has(key(others[0]))) yield others;
  }

  withAddress(labels: Uint8Array, length: number, hash: number): readonly AddressHolder[] {
    const own = this.#own.withAddress(labels, length, hash);
    return own.length > 0 ? own : this.#remote.members.withAddress(labels, length, hash);
  }
}
