// The summary of a job as GitHub shows it: what it says, and that text from containers is nothing but text there.

import assert from "node:assert/strict";
import { test } from "node:test";

import { SUMMARY_BYTES_MAX, failingNames, refusedNames, summaryOf } from "../../../src/action/summary.ts";
import type { JobRecord, RefusedName } from "../../../src/action/tally.ts";
import type { FailureReport } from "../../../src/api/failures.ts";

const EMPTY: JobRecord = {
  isPoliced: false,
  refused: [],
  omittedRefusals: 0,
  problems: [],
  failures: [],
  omittedFailures: 0,
  asked: [],
  ofOtherContainers: 0,
  missed: 0,
  endedEarly: null,
};

const FAILURE: FailureReport = {
  container: "web",
  containerId: "1",
  isRunning: false,
  project: "shop",
  service: "web",
  name: "db",
  type: "A",
  result: "NXDOMAIN",
  count: 2,
  perMinute: 1,
  first: "2026-01-01T00:00:00Z",
  last: "2026-01-01T00:00:01Z",
  lastSuccess: null,
  isContainerName: true,
  cause: {
    code: "other-network",
    sentence: '"db" is container db on network back; web is not on back',
    fix: "docker network connect back web",
    lastingFix: { file: "compose.yaml", service: "web", key: "services.web.networks", change: 'add "back"' },
    isBreaking: true,
  },
};

test("without failures it says so", () => {
  assert.equal(summaryOf(EMPTY), "## Names in this job\n\nNo name of a container failed.\n");
});

test("a failing name has its cause and both fixes, once for A and AAAA", () => {
  const record = { ...EMPTY, failures: [FAILURE, { ...FAILURE, type: "AAAA", count: 1 }] };
  assert.equal(
    summaryOf(record),
    `## Names in this job

1 name of containers did not resolve.

<table>
<tr><th>Container</th><th>Name</th><th>Result</th><th>Queries</th><th>Why, and what helps</th></tr>
<tr><td><code>web</code></td><td><code>db</code></td><td><code>NXDOMAIN</code></td><td>3</td><td><code>&quot;db&quot; is container db on network back; web is not on back</code><br>fix: <code>docker network connect back web</code><br>for good: <code>compose.yaml: services.web.networks: add &quot;back&quot;</code></td></tr>
</table>
`,
  );
  assert.deepEqual(failingNames(record), [{ container: "web", name: "db", sentence: FAILURE.cause?.sentence }]);
});

test("names that resolved later, and names of others, are apart", () => {
  const text = summaryOf({
    ...EMPTY,
    failures: [
      { ...FAILURE, name: "late", lastSuccess: "2026-01-01T00:00:09Z" },
      { ...FAILURE, name: "example.org", isContainerName: false },
    ],
  });
  assert.match(text, /^No name of a container failed\.$/m);
  assert.match(
    text,
    /<summary>Failed at first, and resolved later \(1\)<\/summary>\n<table>\n.*\n.*<code>late<\/code>/,
  );
  assert.match(text, /<summary>Other names that failed \(1\)<\/summary>\n<table>\n.*\n.*<code>example\.org<\/code>/);
});

test("who asked what, and what the record lacks", () => {
  const text = summaryOf({
    ...EMPTY,
    omittedFailures: 1,
    asked: [{ container: "web", names: [{ name: "db", queries: 4, failed: 1, answer: "db-1" }], others: 9 }],
    ofOtherContainers: 2,
    missed: 1,
    endedEarly: "dns11 stopped",
  });
  assert.match(text, /<summary>Who asked what \(1 container\)<\/summary>/);
  assert.match(text, /<code>db<\/code><\/td><td>4<\/td><td>1<\/td><td><code>db-1<\/code>/);
  assert.match(text, /<td>other names<\/td><td>9<\/td>/);
  assert.match(text, /^<p>The record ends before the job: <code>dns11 stopped<\/code><\/p>$/m);
  assert.match(text, /^<p>1 query came too fast to be recorded\.<\/p>$/m);
  assert.match(text, /^<p>2 queries of further containers are not listed\.<\/p>$/m);
  assert.match(text, /^<p>1 more failure not listed\.<\/p>$/m);
});

const HOSTILE = [
  "<script>alert(1)</script>",
  "</code></td></tr></table><img src=x onerror=alert(1)>",
  "`code` **bold** | cell | [link](https://example.org) ![](https://example.org/x.png)",
  "line\n\n# heading\r\n* item",
  "@everyone #1 :tada: $x$ https://example.org GH-1",
  "\u001b[31m \u202e \u2028 \u0085",
  "&lt;b&gt; &#60;b&#62;",
  "'\"><svg/onload=alert(1)>",
];

test("text from containers is text, and nothing else", () => {
  const text = summaryOf({
    ...EMPTY,
    failures: HOSTILE.map((name) => ({
      ...FAILURE,
      name,
      container: name,
      result: name,
      cause: {
        code: "unknown-name" as const,
        sentence: name,
        fix: name,
        lastingFix: { file: name, service: name, key: name, change: name },
        isBreaking: true,
      },
    })),
    asked: HOSTILE.map((name) => ({
      container: name,
      names: [{ name, queries: 1, failed: 0, answer: name }],
      others: 0,
    })),
    endedEarly: HOSTILE.join(""),
    refused: HOSTILE.flatMap((name) =>
      ["not-allowed", "denied"].map((reason) => ({
        ...{ container: name, name, policy: name, because: name, reason, count: 1 },
        ...{ isConnection: reason === "not-allowed", isEnforced: true },
      })),
    ),
    problems: HOSTILE.map((name) => ({ container: name, problem: name })),
  });
  // What is left when code elements are taken away was written here.
  const [head, ...blocks] = text.split(/\n\n/);
  assert.equal(head, "## Names in this job");
  const written = text.replaceAll(/<code>[^<>\n]*<\/code>/g, "");
  const tags = [...written.matchAll(/<\/?([a-z]*)[^>]*>/g)];
  assert.deepEqual(
    new Set(tags.map(([tag]) => tag)),
    new Set([
      "<table>",
      "</table>",
      "<tr>",
      "</tr>",
      "<th>",
      "</th>",
      "<td>",
      "</td>",
      "<br>",
      "<details>",
      "</details>",
      "<summary>",
      "</summary>",
      "<p>",
      "</p>",
    ]),
  );
  assert.doesNotMatch(written, /alert|onerror|everyone|heading|example\.org|tada|bold/);
  assert.doesNotMatch(text.replaceAll("\n", ""), /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u);
  // An empty line ends the HTML, and begins Markdown.
  for (const block of blocks) {
    if (block.includes("<code>")) assert.match(block, /^<(table|details|p)>[\s\S]*<\/\1>\s*$/);
  }
});

test("it fits into the page", () => {
  const names = Array.from({ length: 50 }, (_, at) => ({
    name: `${"<".repeat(400)}${at}`,
    queries: 1,
    failed: 0,
    answer: "<".repeat(400),
  }));
  const asked = Array.from({ length: 200 }, (_, at) => ({ container: `c${at}`, names, others: 0 }));
  const text = summaryOf({ ...EMPTY, failures: [FAILURE], asked });
  assert.ok(Buffer.byteLength(text) <= SUMMARY_BYTES_MAX);
  assert.match(text, /docker network connect back web[\s\S]*The rest is too long for this page\.\n$/);
});

const REFUSED: RefusedName = {
  container: "agent",
  name: "evil.example",
  isConnection: false,
  policy: "ci",
  isEnforced: true,
  reason: "not-allowed",
  because: "policy ci: no rule allows it (policy.yaml:3:3)",
  count: 2,
};

test("what a policy has refused has the rule that allows it, once for A and AAAA, and by container", () => {
  const text = summaryOf({
    ...EMPTY,
    isPoliced: true,
    refused: [
      { ...REFUSED, container: "other", count: 3 },
      REFUSED,
      { ...REFUSED, name: "192.0.2.1:443/tcp", isConnection: true, because: "", count: null },
      { ...REFUSED, name: "[2001:db8::1]:0/icmpv6", isConnection: true, because: "", count: null },
      { ...REFUSED, count: 2 },
      { ...REFUSED, name: "b.example", reason: "denied", because: "policy ci: deny b.example (policy.yaml:9)" },
    ],
    omittedRefusals: 1,
    problems: [{ container: "admin", problem: "not enforced" }],
  });
  assert.equal(
    text,
    `## Names in this job

No name of a container failed.

5 names refused by policies:

<table>
<tr><th>Container</th><th>Policy</th><th>Name</th><th>Queries</th><th>Rule to add, or why</th></tr>
<tr><td><code>agent</code></td><td><code>ci</code></td><td><code>evil.example</code></td><td>4</td><td><code>allow</code>: <code>- &quot;evil.example&quot;  # asked by agent</code></td></tr>
<tr><td><code>agent</code></td><td><code>ci</code></td><td><code>b.example</code></td><td>2</td><td><code>policy ci: deny b.example (policy.yaml:9)</code></td></tr>
<tr><td><code>agent</code></td><td><code>ci</code></td><td><code>192.0.2.1:443/tcp</code></td><td></td><td><code>allow</code>: <code>- &quot;192.0.2.1:443/tcp&quot;  # connected to by agent</code></td></tr>
<tr><td><code>agent</code></td><td><code>ci</code></td><td><code>[2001:db8::1]:0/icmpv6</code></td><td></td><td><code>allow</code>: <code>- &quot;2001:db8::1&quot;  # connected to by agent</code></td></tr>
<tr><td><code>other</code></td><td><code>ci</code></td><td><code>evil.example</code></td><td>3</td><td><code>allow</code>: <code>- &quot;evil.example&quot;  # asked by other</code></td></tr>
</table>

<p>1 more refusal not listed.</p>

<p>The policy of <code>admin</code>: <code>not enforced</code></p>
`,
  );
});

test("what is only audited is apart, and without a refusal it says so", () => {
  const text = summaryOf({ ...EMPTY, refused: [{ ...REFUSED, isEnforced: false }] });
  assert.match(text, /^1 name that policies would refuse if they were enforced:\n\n<table>/m);
  assert.deepEqual(refusedNames({ ...EMPTY, refused: [{ ...REFUSED, isEnforced: false }] }), []);
  assert.match(summaryOf({ ...EMPTY, isPoliced: true }), /^No policy refused anything\.$/m);
});

test("a name that would mean something else in a rule gets none", () => {
  const names = [
    "*.com",
    "**",
    "192.0.2.1",
    'x" # y',
    "a b",
    "1.2.0.192.in-addr.arpa",
    "x.com:443",
    "x\\010y",
    "7",
    null,
  ];
  const refused = names.map((name) => ({ ...REFUSED, name }));
  assert.doesNotMatch(summaryOf({ ...EMPTY, refused }), /<code>allow<\/code>/);
  for (const { sentence } of refusedNames({ ...EMPTY, refused })) assert.equal(sentence, REFUSED.because);
  // A wildcard does not allow the type, but the name itself any; more rules do not help against the others.
  const other = (reason: string): string => summaryOf({ ...EMPTY, refused: [{ ...REFUSED, reason }] });
  assert.match(other("type"), /<code>allow<\/code>/);
  for (const reason of ["denied", "length", "new-names", "questions", "peers", "host", "private", "not-enforceable"])
    assert.doesNotMatch(other(reason), /<code>allow<\/code>/);
});

test("more refusals than a page has room for are counted", () => {
  const refused = Array.from({ length: 107 }, (_, at) => ({ ...REFUSED, name: `${at}.evil.example` }));
  assert.match(summaryOf({ ...EMPTY, refused }), /^<tr><td>7 more names not shown<\/td><\/tr>$/m);
});
