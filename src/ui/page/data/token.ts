/**
 * Token: proves that the page was opened by the user who started `dns11 ui`. It comes in the fragment of the address, which is never
 * sent; it is removed from there, so that it is in no history and in no screenshot.
 */
const KEY = "dns11-token";

export function takeToken(): string {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token === null) return sessionStorage.getItem(KEY) ?? "";
  // A reload needs it again.
  sessionStorage.setItem(KEY, token);
  history.replaceState(null, "", location.pathname);
  return token;
}

/** Another address pasted into the same tab changes only the fragment. */
export function reloadForNewToken(): void {
  addEventListener("hashchange", () => {
    if (location.hash.includes("token=")) location.reload();
  });
}
