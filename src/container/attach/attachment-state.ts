/**
 * AttachmentState: whether one namespace is attached, and if not, why.
 */
export type AttachmentState =
  | { readonly kind: "opening" }
  | { readonly kind: "verifying"; readonly sinceMs: number }
  | { readonly kind: "attached"; readonly sinceMs: number; readonly verifiedMs: number }
  | {
      readonly kind: "failed";
      readonly code: string;
      readonly reason: string;
      readonly culprits: readonly string[];
      readonly atMs: number;
    }
  | { readonly kind: "closed" };
