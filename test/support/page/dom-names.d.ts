/**
 * Names of DOM types that the types of playwright-core mention. The tests run in Node and use none of them, so they are not given those of
 * a browser.
 */
declare global {
  interface Node {
    readonly nodeType: number;
  }
  interface HTMLElement extends Node {
    readonly tagName: string;
  }
  interface SVGElement extends Node {
    readonly tagName: string;
  }
  type HTMLElementTagNameMap = Readonly<Record<string, HTMLElement>>;
}

// oxlint-disable-next-line unicorn/require-module-specifiers -- a file of global names is otherwise not a module.
export {};
