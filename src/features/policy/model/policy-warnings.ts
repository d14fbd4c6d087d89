/**
 * PolicyWarnings: what is valid in a policy, and probably not meant: wildcards below which strangers have names, and rules that can
 * never match.
 */
import { sameBytes } from "../../../base/dns/name.ts";
import type { Pattern } from "../../../base/model/name-pattern.ts";
import { isBlockIn } from "../../../base/model/address.ts";
import type { PolicyRule } from "./policy-rule.ts";
import type { Policy } from "./policy.ts";

/** What Docker and its users call the machine itself. */
const HOST_NAMES = new Set(["host.docker.internal", "gateway.docker.internal"]);

/** A line for each, with its place. */
export function policyWarnings(policies: readonly Policy[]): string[] {
  return policies.flatMap((policy) => [
    ...sharedWildcards(policy),
    ...deadRules(policy),
    ...portsUnchecked(policy),
    ...hostNames(policy),
    ...emptyPolicy(policy),
  ]);
}

function sharedWildcards(policy: Policy): string[] {
  return policy.allow.flatMap((rule) => {
    const why = rule.pattern === undefined ? undefined : sharedBelow(rule.pattern);
    if (why === undefined) return [];
    return [at(policy, rule, `${why}: whoever has one can receive data; list the names that are needed`)];
  });
}

function deadRules(policy: Policy): string[] {
  const { allow, deny, addresses } = policy;
  const names = deny.filter(({ port }) => port === undefined);
  return [
    ...allow.flatMap((rule) => {
      const other = names.find((each) => covers(each, rule));
      return other === undefined ? [] : [at(policy, rule, `it never matches: deny ${other.text} (line ${other.line})`)];
    }),
    ...[allow, deny].flatMap((rules) =>
      rules.flatMap((rule, index) => {
        const earlier = rules.slice(0, index).find((each) => isSame(each, rule));
        return earlier === undefined ? [] : [at(policy, rule, `it is in line ${earlier.line} already`)];
      }),
    ),
    ...(addresses === "enforce" ? [] : deny.filter(({ port }) => port !== undefined)).map((rule) =>
      at(policy, rule, "it never matches: ports are not filtered with addresses: names"),
    ),
  ];
}

function portsUnchecked(policy: Policy): string[] {
  const rule = policy.allow.find(({ port }) => port !== undefined);
  if (policy.addresses === "enforce" || rule === undefined) return [];
  return [at(policy, rule, "every port is open: ports are not filtered with addresses: names")];
}

/** Such a name resolves, which looks as if it could be connected to. */
function hostNames(policy: Policy): string[] {
  if (policy.addresses !== "enforce" || policy.host === "allow") return [];
  return policy.allow
    .filter(({ pattern }) => pattern !== undefined && HOST_NAMES.has(pattern.text.toLowerCase()))
    .map((rule) =>
      at(policy, rule, "nothing connects to it with host: deny: allow the address of the machine with the port"),
    );
}

function emptyPolicy(policy: Policy): string[] {
  if (policy.mode !== "enforce" || policy.allow.length > 0) return [];
  return [`${policy.where}: policies.${policy.name}: it allows no name: nothing is forwarded`];
}

function at({ name, file }: Policy, { line, text }: PolicyRule, what: string): string {
  return `${file}:${line}: policies.${name}: ${text}: ${what}`;
}

function isSame(one: PolicyRule, other: PolicyRule): boolean {
  if (one.port !== other.port || one.protocol !== other.protocol) return false;
  return covers(one, other) && covers(other, one);
}

/** Whether everything that the inner rule is about is in the outer one, but for ports. */
function covers(outer: PolicyRule, inner: PolicyRule): boolean {
  if (outer.block !== undefined && inner.block !== undefined) return isBlockIn(inner.block, outer.block);
  if (outer.pattern === undefined || inner.pattern === undefined) return false;
  return coversPattern(outer.pattern, inner.pattern);
}

function coversPattern(outer: Pattern, inner: Pattern): boolean {
  if (outer.before === "any") return true;
  const start = inner.tail.length - outer.tail.length;
  if (start < 0 || !sameBytes(outer.tail, 0, inner.tail, start, outer.tail.length)) return false;
  const more = inner.tailLabels - outer.tailLabels;
  const isExact = inner.before === "none";
  switch (outer.before) {
    case "none":
      return more === 0 && isExact;
    case "one":
      return more === 0 ? inner.before === "one" : more === 1 && isExact;
    case "some":
      return more === 0 ? inner.before === "one" || inner.before === "some" : more > 0 && inner.before !== "any";
  }
}

/**
 * Domains below which anybody can have a name: public suffixes, and platforms that give each customer one. A wildcard
 * there allows names of strangers, who may receive data. The list is short: it has what people are likely to write, and is no
 * substitute for the public suffix list.
 */
const SHARED: ReadonlySet<string> = new Set([
  // Registries sell names right below these.
  ...["co.uk", "org.uk", "ac.uk", "com.au", "net.au", "co.nz", "co.jp", "ne.jp", "co.kr", "com.br", "com.cn", "com.mx"],
  ...["co.in", "co.za", "com.tr", "com.tw", "com.sg", "com.hk", "com.ar", "co.il"],
  // Amazon.
  ...["amazonaws.com", "s3.amazonaws.com", "elb.amazonaws.com", "execute-api.amazonaws.com", "cloudfront.net"],
  ...["amplifyapp.com", "awsapprunner.com", "on.aws", "elasticbeanstalk.com"],
  // Microsoft.
  ...["azurewebsites.net", "blob.core.windows.net", "core.windows.net", "windows.net", "azureedge.net"],
  ...["cloudapp.azure.com", "cloudapp.net", "azurestaticapps.net", "trafficmanager.net", "azurefd.net"],
  // Google.
  ...["appspot.com", "run.app", "cloudfunctions.net", "web.app", "firebaseapp.com", "storage.googleapis.com"],
  ...["googleusercontent.com", "blogspot.com", "firebaseio.com"],
  // Others.
  ...["github.io", "githubusercontent.com", "githubpreview.dev", "gitlab.io", "bitbucket.io", "herokuapp.com"],
  ...["vercel.app", "now.sh", "netlify.app", "pages.dev", "workers.dev", "r2.dev", "trycloudflare.com", "fly.dev"],
  ...["onrender.com", "railway.app", "deno.dev", "glitch.me", "repl.co", "replit.dev", "surge.sh", "ngrok.io"],
  ...["ngrok.app", "ngrok-free.app", "loca.lt", "digitaloceanspaces.com", "ondigitalocean.app", "fastly.net"],
  ...["akamaized.net", "akamaiedge.net", "edgekey.net", "edgesuite.net", "b-cdn.net", "cdn.cloudflare.net"],
  ...["supabase.co", "ghost.io", "myshopify.com", "wordpress.com", "hf.space", "gradio.live", "dyndns.org"],
  ...["duckdns.org", "no-ip.org", "sslip.io", "nip.io", "xip.io"],
]);

/** Says where strangers have names that a wildcard matches; undefined for what is no wildcard, or of one owner. */
export function sharedBelow({ before, tailLabels, text }: Pattern): string | undefined {
  if (before === "none") return undefined;
  if (tailLabels === 0) return "it matches names of everybody";
  const domain = text.replace(/^\*\*?\./, "");
  if (tailLabels === 1) return `"${domain}" is a whole top-level domain`;
  return SHARED.has(domain) ? `anybody can have a name below "${domain}"` : undefined;
}
