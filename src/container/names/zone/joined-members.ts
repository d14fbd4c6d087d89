/**
 * JoinedMembers: the members of services on all machines: those of this machine, and those that others publish in etcd. The
 * first come first.
 */
import { LIMITS } from "../../../base/limits.ts";
import type { AddressHolder, MemberSet, ZoneMember } from "./member.ts";
import type { RemoteMembers } from "./remote-members.ts";

export class JoinedMembers implements MemberSet {
  readonly #own: MemberSet;
  readonly #remote: RemoteMembers;

  constructor(own: MemberSet, remote: RemoteMembers) {
    this.#own = own;
    this.#remote = remote;
  }

  *matching(project: string, service?: string): Iterable<ZoneMember> {
    yield* this.#own.matching(project, service);
    const perMachine = new Map<string, number>();
    for (const member of this.#remote.members.matching(project, service)) {
      const { machine = "", unless = [] } = member.remote ?? {};
      // Of several ways to a container a client gets one.
      const count = (perMachine.get(machine) ?? 0) + (unless.length === 0 ? 1 : 0);
      perMachine.set(machine, count);
      if (count <= LIMITS.etcdAnswerMembers) yield member;
    }
  }

  *services(): Iterable<readonly ZoneMember[]> {
    const seen = new Set<string>();
    const key = ({ project, service }: ZoneMember): string => `${project}/${service}`;
    for (const own of this.#own.services()) {
      const [first] = own;
      if (first === undefined) continue;
      seen.add(key(first));
      yield [...own, ...this.#remote.members.matching(first.project, first.service)];
    }
    for (const others of this.#remote.members.services())
      if (others[0] !== undefined && !seen.has(key(others[0]))) yield others;
  }

  withAddress(labels: Uint8Array, length: number, hash: number): readonly AddressHolder[] {
    const own = this.#own.withAddress(labels, length, hash);
    return own.length > 0 ? own : this.#remote.members.withAddress(labels, length, hash);
  }
}
