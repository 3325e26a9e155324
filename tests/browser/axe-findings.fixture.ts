// What is wrong with a page at every width, in light and in dark: what axe finds serious, and what does not fit.
import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** `rules`: those alone; all of them unless told. */
export const seriousFindings = async (page: Page, rules?: readonly string[]): Promise<string[]> => {
  if ((await page.evaluate('typeof globalThis.axe')) === 'undefined') await page.evaluate(axe.source);
  const options = { resultTypes: ['violations'], ...(rules === undefined ? {} : { runOnly: rules }) };
  const run = `axe.run(document, ${JSON.stringify(options)})`;
  const { violations } = await page.evaluate<Pick<axe.AxeResults, 'violations'>>(run);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`));
};

/** A phone, a tablet, a desk: three layouts. */
const WIDTHS = [1440, 768, 390] as const;

/** What a theme can break. */
const COLOURS = ['color-contrast'];

/**
 * Every way in which text stands on the page: all that its contrast comes from. What lies over something else is the exception;
 * that is found where all rules run.
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

/** Those that axe has found to be right. */
const rightWays = new Set<string>();

const LOOKS = WIDTHS.flatMap((width) => (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })));

/** `npm run test:long -- colors`. */
const IS_WHOLE_EVERYWHERE = process.env['TUNNEL_ALL_COLOURS'] === '1';

let pages = 0;

/**
 * Resized, never loaded again. All rules run once on a page, at one width and in one theme, which the pages take in turns; elsewhere the colours, unless
 * all text stands as text did that was found right: most of the time goes into them.
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

/** Parts of the page are drawn anew by its script when the width has changed: they are there with the second frame from then. */
const TWO_FRAMES = 'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))';

const fits = async (page: Page, width: number): Promise<boolean> => {
  await page.setViewportSize({ width, height: 900 });
  await page.evaluate(TWO_FRAMES);
  return (await page.evaluate<number>('document.documentElement.scrollWidth')) <= width;
};
