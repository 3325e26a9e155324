// What axe finds on a page that is serious: on a desk and on a phone, in light and in dark.
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

/**
 * Both forms and both sets of colours. The other two pairs have nothing new but where text lies over what, so that they are
 * looked at when asked for.
 */
export const findingsOf = async (page: Page): Promise<string[]> => {
  const found: string[] = [];
  const look = async (place: string, colorScheme: 'light' | 'dark', rules?: readonly string[]): Promise<void> => {
    await page.emulateMedia({ colorScheme });
    found.push(...(await seriousFindings(page, rules)).map((finding) => `${colorScheme}, ${place}: ${finding}`));
  };
  await look('on a desk', 'light');
  if (ALL_PAIRS) await look('on a desk', 'dark', COLOURS);
  await page.setViewportSize({ width: 360, height: 800 });
  await look('on a phone', 'dark');
  if (ALL_PAIRS) await look('on a phone', 'light', COLOURS);
  return found;
};

const COLOURS = ['color-contrast'];
const ALL_PAIRS = process.env['TUNNEL_ALL_COLOURS'] === '1';
