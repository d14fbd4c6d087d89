/**
 * ProgramAnswer: what programs in a container get instead of the reply to a name: its C library reads the container's own files, in the
 * order of nsswitch.conf, and tries other names of the search list.
 */
import type { Cause } from "../../api/causes.ts";
import type { Explanation } from "../../api/names.ts";
import { bareName } from "../../base/dns/name.ts";
import type { ParsedQuestion } from "../../base/model/name-query.ts";
import type { ReplyText } from "../../base/model/reply-text.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { type LookupOrder, USUAL_ORDER } from "../../container/watch/nsswitch.ts";
import { withoutComment } from "../../base/lib/text.ts";
import { addressBytes } from "../../base/model/address.ts";
import { addressesIn } from "../situation/address-owners.ts";
import { searchShadowCause, searchNames } from "../causes/client-causes.ts";
import { givenHostCause } from "../causes/lost-aliases.ts";
import { type KnownContainer, runningContainer } from "../causes/known-container.ts";
import { cause } from "../causes/situation.ts";
import type { SituationPorts, Situations } from "../situation/situations.ts";

const FAMILY_BYTES: Readonly<Record<string, number>> = { A: 4, AAAA: 16 };

/** Addresses of one name that are reported. */
const ADDRESSES_MAX = 16;

interface Replied {
  readonly reply: ReplyText | null;
  readonly fromSearch?: Explanation["fromSearch"] | undefined;
}

const HOSTS = "/etc/hosts";
const NSSWITCH = "/etc/nsswitch.conf";
const SWITCH_ADVICE = `"hosts: files dns" is usual: change the line in the image, or mount a file with it over ${NSSWITCH}`;
const ADDRESS_TYPES: ReadonlySet<string> = new Set(["A", "AAAA"]);

/** What programs get from the container's own files and search list, and why, if that is not the reply. */
export function beforeReply(
  { inside }: SituationPorts,
  fact: ContainerFact,
  client: KnownContainer,
  question: ParsedQuestion,
  { reply, fromSearch }: Replied,
): Pick<Explanation, "fromFile" | "fromSearch"> & { readonly causes: readonly Cause[] } {
  const { name, typeName } = question;
  const asked = fromSearch === undefined ? {} : { fromSearch };
  if (!ADDRESS_TYPES.has(typeName)) return { causes: [] };
  // Of the file that Docker makes; what a user mounts over it is not read.
  const addresses = addressesInHosts(inside.hostsOf?.(fact) ?? "", question);
  const order = inside.lookupOrderOf?.(fact) ?? USUAL_ORDER;
  const replied = fromSearch?.addresses ?? addressesIn(reply?.answers ?? []);
  const isRead = order.file === "first" || (order.file === "after failure" && replied.length === 0);
  if (!order.queries && (addresses.length === 0 || !isRead)) {
    return { fromFile: { path: NSSWITCH, addresses: [] }, causes: [neverQueries(fact, order)] };
  }
  if (order.queries && addresses.every((address) => replied.includes(address))) return { ...asked, causes: [] };
  const fromFile = { path: HOSTS, addresses };
  if (isRead) return { fromFile, causes: [hostsCause(fact, client, name, fromFile, order)] };
  const sentence = `programs in ${fact.name} do not get ${addresses.join(", ")}, which ${HOSTS} has for "${name}": ${order.origin}`;
  return { ...asked, causes: [cause("nsswitch", sentence, { advice: SWITCH_ADVICE })] };
}

function neverQueries({ name }: ContainerFact, { origin }: LookupOrder): Cause {
  const sentence = `programs in ${name} query no server: ${origin}`;
  return cause("nsswitch", sentence, { advice: SWITCH_ADVICE, isBreaking: true });
}

interface SearchContext {
  readonly fact: ContainerFact;
  readonly owner: ContainerFact;
  readonly question: ParsedQuestion;
  readonly reply: ReplyText | null;
  readonly query: (question: ParsedQuestion) => Promise<ReplyText | null>;
}

/** The answer for another name of the search list that programs get: one before the name, or after it if it fails. */
export async function searchAnswer(
  { inside }: SituationPorts,
  { fact, owner, question, reply, query }: SearchContext,
): Promise<Explanation["fromSearch"]> {
  const resolvConf = inside.resolvConfOf(fact) ?? inside.resolvConfOf(owner);
  if (resolvConf === undefined || fact.networkMode === "host" || !ADDRESS_TYPES.has(question.typeName))
    return undefined;
  const names = searchNames(question, resolvConf);
  const own = names.indexOf(question);
  const replied = addressesIn(reply?.answers ?? []);
  const others = replied.length > 0 ? names.slice(0, own) : names.filter((each) => each !== question);
  const all = await Promise.all(
    others.map(async (each) => {
      const found = await query(each);
      return { name: each.name, addresses: addressesIn(found?.answers ?? []) };
    }),
  );
  const first = all.find(({ addresses }) => addresses.length > 0);
  return first?.addresses.every((address) => replied.includes(address)) === true ? undefined : first;
}

/** An upstream server has an answer before a container is asked for. */
export function searchCause(
  { known }: Situations,
  fact: ContainerFact,
  { name }: ParsedQuestion,
  { name: completed, addresses }: NonNullable<Explanation["fromSearch"]>,
): Cause[] {
  const isContainers = addresses.some((address) => known.withAddress(address).length > 0);
  if (isContainers || known.places(name.toLowerCase()).length === 0) return [];
  return [searchShadowCause(known.byId(fact.id) ?? runningContainer(fact), name, completed)];
}

function hostsCause(
  fact: ContainerFact,
  client: KnownContainer,
  name: string,
  { path, addresses }: NonNullable<Explanation["fromFile"]>,
  { file, origin: order }: LookupOrder,
): Cause {
  const bare = bareName(name);
  const when = file === "first" ? undefined : `no server has it: ${order}`;
  if (fact.extraHosts.some((each) => each.name.toLowerCase() === bare))
    return givenHostCause(client, name, addresses, when);
  const sentence = `programs in ${fact.name} get ${addresses.join(", ")}: ${path} has "${name}", and ${when ?? "they read it before they query"}`;
  return cause("hosts-file", sentence, { advice: `remove "${name}" from it, if it is not meant` });
}

/**
 * What a container's /etc/hosts says of a name. C libraries read it before they query a server, so a program gets
 * what it says, whatever dns11 would answer. The text is the container's: it may write the file.
 *
 * The addresses of the type in question, in the order of the file.
 */
export function addressesInHosts(
  text: string,
  { name, typeName }: Pick<ParsedQuestion, "name" | "typeName">,
): string[] {
  const bytes = FAMILY_BYTES[typeName];
  if (bytes === undefined) return [];
  const wanted = bareName(name);
  const found = new Set<string>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = withoutComment(line).trim().split(/\s+/);
    if (found.size === ADDRESSES_MAX || addressBytes(address)?.length !== bytes) continue;
    if (names.some((each) => bareName(each) === wanted)) found.add(address);
  }
  return [...found];
}
