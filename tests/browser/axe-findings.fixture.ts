// Finds faults of a page at every width and in both themes: serious axe findings, and content wider than the screen.
import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** Returns serious axe findings. `rules` limits the check to these rules; by default all rules run. */
export const seriousFindings = async (page: Page, rules?: readonly string[]): Promise<string[]> => {
  if ((await page.evaluate('typeof globalThis.axe')) === 'undefined') await page.evaluate(axe.source);
  const options = { resultTypes: ['violations'], ...(rules === undefined ? {} : { runOnly: rules }) };
  const run = `axe.run(document, ${JSON.stringify(options)})`;
  const { violations } = await page.evaluate<Pick<axe.AxeResults, 'violations'>>(run);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`));
};

/** Widths of the three layouts: desktop, tablet and phone. */
const WIDTHS = [1440, 768, 390] as const;

/** Rules that can fail because of a theme. */
const COLOURS = ['color-contrast'];

/**
 * Script that returns the distinct text styles of a page with everything that determines contrast. Overlapping elements are the
 * exception; they are found where all rules run.
 */
const WAYS_OF_TEXT = `[...new Set([...document.querySelectorAll('body *')].flatMap((element) => {
  const hasText = element.matches('input, select, textarea') || [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '');
  if (!hasText || !element.checkVisibility({ visibilityProperty: true })) return [];
  const { color, fontSize, fontWeight } = getComputedStyle(element);
  const grounds = [];
  for (let at = element; at !== null; at = at.parentElement) {
    const { backgroundColor, backgroundImage, opacity, filter } = getComputedStyle(at);
    grounds.push(backgroundColor + backgroundImage + opacity + filter);
  }
  return [[color, fontSize, fontWeight, element.disabled === true, ...new Set(grounds)].join(' ')];
}))]`;

/** Text styles in which axe found no contrast fault. */
const rightWays = new Set<string>();

const LOOKS = WIDTHS.flatMap((width) => (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })));

/** Runs all rules at every width and in both themes. Set by `npm run test:long -- colors`. */
const IS_WHOLE_EVERYWHERE = process.env['TUNNEL_ALL_COLOURS'] === '1';

let pages = 0;

/**
 * Returns the findings of a page, which is resized but never reloaded. Pages take turns in the width and theme at which all rules run.
 * Elsewhere only colors are checked, and only if a text style is new, because axe takes most of the time of these tests.
 */
export const findingsOf = async (page: Page): Promise<string[]> => {
  const found: string[] = [];
  const turn = pages++ % LOOKS.length;
  for (const [nth, { width, colorScheme }] of LOOKS.entries()) {
    await page.emulateMedia({ colorScheme });
    if (!(await fits(page, width))) found.push(`${width} px, ${colorScheme}: the page is wider than the screen`);
    const isWhole = IS_WHOLE_EVERYWHERE || nth === turn;
    const ways = await page.evaluate<string[]>(WAYS_OF_TEXT);
    if (!isWhole && ways.every((way) => rightWays.has(way))) continue;
    const findings = await seriousFindings(page, isWhole ? undefined : COLOURS);
    found.push(...findings.map((finding) => `${width} px, ${colorScheme}: ${finding}`));
    if (findings.length === 0) for (const way of ways) rightWays.add(way);
  }
  if (!(await fits(page, 360))) found.push('360 px: the page is wider than the screen');
  return found;
};

/** Script that waits for two frames, because the page redraws some parts with a script after a change of width. */
const TWO_FRAMES = 'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))';

const fits = async (page: Page, width: number): Promise<boolean> => {
  await page.setViewportSize({ width, height: 900 });
  await page.evaluate(TWO_FRAMES);
  return (await page.evaluate<number>('document.documentElement.scrollWidth')) <= width;
};
