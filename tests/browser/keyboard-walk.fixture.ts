// Walks through a page with the Tab key and reports controls that were not reached or had no visible focus.
import type { Page } from 'playwright-core';

const STEPS_MAX = 300;

export interface Walk {
  /** Controls that the Tab key never reached. */
  readonly missed: string[];
  /** Controls without a visible focus outline. */
  readonly unseen: string[];
}

/** Script that lists the controls. Only the checked radio button of a group counts, because arrow keys reach the others. */
const PREPARE = `(() => {
  document.activeElement?.blur();
  getSelection().removeAllRanges();
  document.body.tabIndex = -1;
  document.body.focus();
  const wanted = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
  const controls = [...document.querySelectorAll(wanted)].filter((control) => {
    if (control.disabled || control.tabIndex < 0 || control.closest('[inert]')) return false;
    if (control.type === 'radio' && !control.checked) return false;
    return control.checkVisibility({ visibilityProperty: true });
  });
  globalThis.walk = { controls: new Set(controls), begun: false, unseen: [] };
})()`;

/** Script that records the focused control. Returns true at the end of the page, when the focus has left all controls. */
const STEP = `(() => {
  const { walk } = globalThis;
  const control = document.activeElement;
  if (control === null || control === document.body) return walk.begun;
  walk.begun = true;
  const isFirstTime = walk.controls.delete(control);
  const rings = [control, control.parentElement, control.closest('label')].filter(Boolean).map((element) => getComputedStyle(element));
  const isSeen = rings.some(({ outlineStyle, outlineWidth }) => outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1);
  if (isFirstTime && !isSeen) walk.unseen.push(control.outerHTML.slice(0, 200));
  return false;
})()`;

const REPORT = `({ missed: [...globalThis.walk.controls].map((control) => control.outerHTML.slice(0, 200)), unseen: globalThis.walk.unseen })`;

export const walkByTab = async (page: Page): Promise<Walk> => {
  await page.evaluate(PREPARE);
  for (let steps = 0; steps < STEPS_MAX; steps += 1) {
    await page.keyboard.press('Tab');
    if (await page.evaluate<boolean>(STEP)) break;
  }
  return page.evaluate<Walk>(REPORT);
};
