/**
 * Install: our tables into a namespace and out of it, by the socket that owns them; whatever stands there under our name
 * already is nobody's, or another instance's.
 */
import { SystemFault } from "../../kernel/libc.ts";
import type { NftSocket } from "../../kernel/nfnetlink.ts";
import { Fault } from "../../lib/fault.ts";
import type { Lead } from "../capture/capture.ts";
import { createCommands, deleteCommands } from "./encode.ts";
import { TABLE_NAME, type TablePlan, familyOf } from "./plan.ts";

/** Makes the tables; one that a dead instance of another tier left behind is replaced, one that somebody owns is not. */
export function installTables(nft: NftSocket, plans: readonly TablePlan[]): void {
  const commands = createCommands(plans);
  try {
    nft.transact(commands);
  } catch (error) {
    if (!(error instanceof SystemFault)) throw error;
    if (error.code === "EPERM") throw ownedElsewhere(error);
    if (!plans.some((plan) => wasRemoved(nft, plan))) throw error;
    nft.transact(commands);
  }
}

function wasRemoved(nft: NftSocket, plan: TablePlan): boolean {
  try {
    nft.transact(deleteCommands(plan));
    return true;
  } catch {
    // Then there was no such table, and the first refusal is the one to tell.
    return false;
  }
}

function ownedElsewhere(cause: SystemFault): Fault {
  return new Fault(
    "OWNED_ELSEWHERE",
    `The table "${TABLE_NAME}" of this namespace belongs to another running instance`,
    {
      cause,
      remedy: "An instance inside the container serves it already, or another one serves the same engine.",
    },
  );
}

/** Of the families in which these leads are. */
export function removeTables(nft: NftSocket, leads: readonly Pick<Lead, "bind">[]): void {
  const families = new Set(leads.map(({ bind }) => familyOf(bind)));
  nft.transact([...families].flatMap((family) => deleteCommands({ family, name: TABLE_NAME })));
}
