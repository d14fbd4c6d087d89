/**
 * PolicyText: policies, what they say of a name, and what they have refused, as text.
 */
import type {
  ClosedMoment,
  PoliciesReport,
  PolicyCheck,
  PolicyContainer,
  PolicyRefusal,
} from "../../src/api/policies.ts";
import { printableLines } from "./printable.ts";
import { type Column, type Row, table } from "./table.ts";
import { type Display, localTime } from "./terminal.ts";

const HEAD: readonly Column[] = [
  { title: "CONTAINER", min: 12 },
  { title: "POLICY", min: 8 },
  { title: "MODE" },
  { title: "REFUSED", isNumber: true },
  { title: "WOULD REFUSE", isNumber: true, drop: 1 },
  { title: "CLOSED AT" },
];

const MOMENTS = ["boot", "birth", "life", "death"] as const;

export function policiesText({ policies, containers }: PoliciesReport, display: Display): string {
  if (policies.length === 0 && containers.length === 0)
    return "the settings have no policies: see policies in dns11 man dns11.yaml\n";
  if (containers.length === 0) {
    const each = policies.map(({ name, for: scopes }) => `${name} (${scopes.join(", ") || "label io.dns11.policy"})`);
    return `no container has a policy; those defined are for: ${each.join("; ")}\n`;
  }
  const rows = containers.map((container): Row => {
    const { policies: own, mode, refused, wouldRefuse, notServed, problems, grants, names } = container;
    return {
      cells: [
        container.container,
        own.map(({ name }) => name).join(", "),
        { text: mode, colour: mode === "enforce" ? "bold" : undefined },
        String(refused),
        String(wouldRefuse),
        notServed === null ? closedText(container) : { text: "not served", colour: "red" },
      ],
      notes: [
        ...refusedText(container),
        ...problems.map((text) => ({ text: `  ${text}`, colour: "red" as const })),
        ...(names.length === 0 ? [] : [`  last: ${names.join(", ")}`]),
        ...grants.map((text) => `  ${text}`),
      ],
    };
  });
  return `${table(HEAD, rows, display)}\n${openText(containers)}`;
}

const REFUSED_SHOWN = 5;

/** Addresses that it tried, and whose name it never got. */
function refusedText({ addresses }: PolicyContainer): string[] {
  const refused = addresses?.refused ?? [];
  if (refused.length === 0) return [];
  const more = refused.length > REFUSED_SHOWN ? `, and ${refused.length - REFUSED_SHOWN} more` : "";
  return [`  refused connections in the last day: ${refused.slice(0, REFUSED_SHOWN).join(", ")}${more}`];
}

function closedText(container: PolicyContainer): string {
  return MOMENTS.filter((each) => container[each].isClosed).join(", ") || "-";
}

/** Why each moment is open: once for all containers of which that is true. */
function openText(containers: readonly PolicyContainer[]): string {
  const reasons = MOMENTS.flatMap((each) => {
    const open = containers
      .filter(({ notServed }) => notServed === null)
      .map((container): ClosedMoment => container[each])
      .filter(({ isClosed }) => !isClosed);
    return [...new Set(open.map(({ because }) => because))].map((because) => `open at ${each}: ${because}`);
  });
  return printableLines(reasons);
}

export function verdictText({
  container,
  name,
  port,
  type,
  verdict,
  because,
  notes,
  fix,
}: PolicyCheck): readonly string[] {
  const what = `${name}${port === null ? "" : `:${port}`}${type === "A" ? "" : ` ${type}`}`;
  const verb = {
    allowed: "allowed",
    refused: "refused",
    "would-refuse": "only recorded: it would be refused if the policy were enforced",
    "no-policy": "not filtered",
  }[verdict];
  return [
    `${what} in ${container}: ${verb}`,
    `  ${because}`,
    ...notes.map((note) => `  ${note}`),
    ...(fix === null ? [] : [`  to allow it for a while: ${fix}`]),
  ];
}

export function refusalText(refusal: PolicyRefusal, nowMs: number): string {
  const { last, container, name, type, verdict, because, count } = refusal;
  const times = count === 1 ? "" : ` (${count} times)`;
  const verb = verdict === "refused" ? "refused" : "would refuse";
  return `${localTime(last, nowMs)} ${container} ${verb} ${name ?? "a name"} ${type}${times}: ${because}`;
}
