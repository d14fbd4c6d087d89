/**
 * MachineMembers: members by the machine that they are on, so that those of one can be passed over. Most host names have one
 * member, which takes no table.
 */
import { MultiMap } from "../../../base/lib/multi-map.ts";
import type { ZoneMember } from "./member.ts";

const THIS_MACHINE = "";

export class MachineMembers {
  #only: ZoneMember | undefined;
  #table: MultiMap<ZoneMember> | undefined;

  get isEmpty(): boolean {
    return this.#only === undefined && this.#table?.isEmpty !== false;
  }

  /** Those of each machine. */
  groups(): Iterable<Iterable<ZoneMember>> {
    if (this.#table !== undefined) return this.#table.groups();
    return this.#only === undefined ? [] : [[this.#only]];
  }

  add(member: ZoneMember): void {
    if (this.isEmpty) {
      this.#only = member;
      this.#table = undefined;
      return;
    }
    this.#table ??= new MultiMap();
    for (const each of this.#only === undefined ? [member] : [this.#only, member])
      this.#table.add(machineOf(each), each);
    this.#only = undefined;
  }

  remove(member: ZoneMember): void {
    if (this.#only === member) this.#only = undefined;
    this.#table?.delete(machineOf(member), member);
  }
}

function machineOf({ remote }: ZoneMember): string {
  return remote?.machine ?? THIS_MACHINE;
}
