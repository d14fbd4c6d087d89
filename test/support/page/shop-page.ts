/** ShopPage: the page of `dns11 ui` for a shop, open in a browser. What was opened is closed again, also if opening fails. */
import type { Browser, Page } from "playwright-core";

import type { UiCommand } from "../program/ui-command.ts";
import { errorsOf, openPage, startBrowser } from "./browser.ts";

export interface ShopPage extends AsyncDisposable {
  readonly ui: UiCommand;
  readonly browser: Browser;
  readonly page: Page;
  /** Errors of the page so far. */
  readonly errors: readonly string[];
}

export async function openShopPage(ui: UiCommand): Promise<ShopPage> {
  let browser: Browser | undefined;
  const close = async (): Promise<void> => {
    await browser?.close();
    await ui[Symbol.asyncDispose]();
  };
  try {
    browser = await startBrowser();
    const page = await openPage(browser);
    const errors = errorsOf(page);
    await page.goto(ui.url);
    return { ui, browser, page, errors, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}
