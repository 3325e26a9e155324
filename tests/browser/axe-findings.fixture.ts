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

/** Resized, never loaded again. All rules once in each theme, on the widest and on the narrowest page; elsewhere those that may differ. */
export const findingsOf = async (page: Page): Promise<string[]> => {
  const found: string[] = [];
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const isWhole = (width === 1440 && colorScheme === 'light') || (width === 390 && colorScheme === 'dark');
      const findings = await seriousFindings(page, isWhole ? undefined : COLOURS);
      found.push(...findings.map((finding) => `${width} px, ${colorScheme}: ${finding}`));
    }
    if (!(await fits(page, width))) found.push(`${width} px: the page is wider than the screen`);
  }
  if (!(await fits(page, 360))) found.push('360 px: the page is wider than the screen');
  return found;
};

const fits = async (page: Page, width: number): Promise<boolean> => {
  await page.setViewportSize({ width, height: 900 });
  return (await page.evaluate<number>('document.documentElement.scrollWidth')) <= width;
};
