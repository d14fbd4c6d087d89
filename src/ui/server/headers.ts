/**
 * Headers: what the browser is told with every response: nothing from elsewhere, no inline code, no frame around the page, and
 * nothing is stored.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
];

export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": [...POLICY, "frame-ancestors 'none'"].join("; "),
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** For a page that is opened from disk, which has no origin of its own; it makes no request. */
export const SNAPSHOT_POLICY = POLICY.map((each) =>
  each.replace("connect-src 'self'", "connect-src 'none'").replace("'self'", "'self' file:"),
).join("; ");
