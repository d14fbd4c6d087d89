// Owns the kinds of questions that everybody is asked, each of them a row of the table: what is asked, who can be asked
// it, and what has to come back.

import type { DigReply } from "../support/client/dig.ts";
import type { Asking } from "./dnsperf.ts";
import type { Place } from "./testbed.ts";
import { type Host, type Questions, reverseName } from "./questions.ts";
import { SERVERS, type Server } from "./server.ts";

export type Kind = {
  readonly row: string;
  readonly place: Place;
  readonly servers: readonly Server[];
  // The questions for so many seconds.
  readonly asking: (server: Server, seconds: number) => Asking;
  // One of them as dig takes it, and whether the reply is what it should be.
  readonly question: readonly string[];
  readonly isRight: (reply: DigReply, server: Server) => boolean;
};

export const ROWS = {
  address: "container name, A",
  reverse: "container address, PTR",
  text: "container name, TXT: no such data",
  names: "container name of 10,000, A",
  kept: "forwarded, kept",
  gone: "forwarded, kept: no such name",
  anew: "forwarded, asked anew",
  twoThreads: "the same, dnsperf with two threads",
} as const;

// It has one answer, to everything.
const NOT_FLOOR = SERVERS.filter((server) => server !== "floor");

// dockerd's resolver asks its servers about other types of a container's name, and they have never heard of it.
const textRcode = (server: Server) => (server === "dockerd" ? "NXDOMAIN" : "NOERROR");

export function localKinds(questions: Questions, place: Place, large: Place): Kind[] {
  const [first, last] = [firstOf(place.hosts), firstOf(large.hosts.slice(-1))];
  const [addresses, texts] = [questions.addresses(place.hosts), questions.texts(place.hosts)];
  const [reverse, names] = [questions.reverse(place.hosts), questions.addresses(large.hosts)];
  return [
    {
      row: ROWS.address,
      place,
      servers: SERVERS,
      asking: () => ({ file: addresses, rcode: "NOERROR" }),
      question: [first.name, "A"],
      isRight: (reply, server) => holds(reply, server === "floor" ? "192.0.2.1" : first.address),
    },
    {
      row: ROWS.reverse,
      place,
      servers: NOT_FLOOR,
      asking: () => ({ file: reverse, rcode: "NOERROR" }),
      question: [reverseName(first.address), "PTR"],
      isRight: ({ answer }) => answer.some(({ data }) => data.startsWith(`${first.name}.`)),
    },
    {
      row: ROWS.text,
      place,
      servers: NOT_FLOOR,
      asking: (server) => ({ file: texts, rcode: textRcode(server) }),
      question: [first.name, "TXT"],
      isRight: ({ status, answer }, server) => status === textRcode(server) && answer.length === 0,
    },
    {
      row: ROWS.names,
      place: large,
      servers: NOT_FLOOR,
      asking: () => ({ file: names, rcode: "NOERROR" }),
      question: [last.name, "A"],
      isRight: (reply) => holds(reply, last.address),
    },
  ];
}

export function forwardedKinds(questions: Questions, place: Place): Kind[] {
  const [kept, gone] = [questions.kept(), questions.gone()];
  return [
    {
      row: ROWS.anew,
      place,
      servers: NOT_FLOOR,
      asking: (_server, seconds) => ({ file: questions.anew(seconds), rcode: "NOERROR" }),
      question: ["anew.test", "A"],
      isRight: (reply) => holds(reply, "192.0.2.1"),
    },
    {
      row: ROWS.kept,
      place,
      servers: NOT_FLOOR,
      asking: () => ({ file: kept, rcode: "NOERROR" }),
      question: ["kept-0.test", "A"],
      isRight: (reply) => holds(reply, "192.0.2.1"),
    },
    {
      row: ROWS.gone,
      place,
      servers: NOT_FLOOR,
      asking: () => ({ file: gone, rcode: "NXDOMAIN" }),
      question: ["kept-0.gone.test", "A"],
      isRight: ({ status, answer }) => status === "NXDOMAIN" && answer.length === 0,
    },
  ];
}

function holds({ status, answer }: DigReply, address: string): boolean {
  return status === "NOERROR" && answer.length === 1 && answer[0]?.data === address;
}

function firstOf([host]: readonly Host[]): Host {
  if (host === undefined) throw new Error("No names");
  return host;
}
