/**
 * SharedDomains: domains below which anybody can have a name: public suffixes, and platforms that give each customer one. A wildcard
 * there allows names of strangers, who may receive data. The list is short: it has what people are likely to write, and is no
 * substitute for the public suffix list.
 */
import type { Pattern } from "../../base/model/name-pattern.ts";

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

/** Where strangers have names that the wildcard matches; undefined if it is not one, or of one owner. */
export function sharedBelow({ before, tailLabels, text }: Pattern): string | undefined {
  if (before === "none") return undefined;
  if (tailLabels === 0) return "it matches names of everybody";
  const domain = text.replace(/^\*\*?\./, "");
  if (tailLabels === 1) return `"${domain}" is a whole top-level domain`;
  return SHARED.has(domain) ? `anybody can have a name below "${domain}"` : undefined;
}
