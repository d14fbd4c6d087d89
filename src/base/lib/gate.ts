/**
 * Gate: lets all who wait pass, once it is opened.
 */
export interface Gate {
  readonly isOpen: boolean;
  readonly passed: Promise<void>;
}

export function gate(): Gate & { readonly open: () => void } {
  let isOpen = false;
  let pass = (): void => undefined;
  const passed = new Promise<void>((resolve) => (pass = resolve));
  const open = (): void => {
    isOpen = true;
    pass();
  };
  return {
    get isOpen() {
      return isOpen;
    },
    passed,
    open,
  };
}
