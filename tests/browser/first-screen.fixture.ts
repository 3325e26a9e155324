// Checks whether an element is visible without scrolling on a laptop and on a phone, in both themes.
import type { Locator, Page } from 'playwright-core';

const SCREENS = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
] as const;

/**
 * Whether the whole box is on the screen and uncovered: the elements at its corners and its center belong to the box. The points lie 6 px
 * inside, because a rounded corner of a card does not belong to the card.
 */
const isSeen = (page: Page, box: { x: number; y: number; width: number; height: number }): Promise<boolean> =>
  page.evaluate<boolean>(`((box) => {
    const [right, bottom] = [box.x + box.width, box.y + box.height];
    const points = [[box.x + 6, box.y + 6], [right - 6, bottom - 6], [box.x + box.width / 2, box.y + box.height / 2]];
    const isBox = (rect) => Math.abs(rect.x - box.x) < 1 && Math.abs(rect.y - box.y) < 1 && Math.abs(rect.height - box.height) < 1;
    const isOnTop = ([x, y]) => {
      for (let at = document.elementFromPoint(x, y); at !== null; at = at.parentElement) {
        if (isBox(at.getBoundingClientRect())) return true;
      }
      return false;
    };
    return scrollY === 0 && box.y >= 0 && bottom <= innerHeight && points.every(isOnTop);
  })(${JSON.stringify(box)})`);

/** Returns the screens on which the element is not visible. `open` loads the page and returns the element. */
export const screensWithout = async (page: Page, open: () => Promise<Locator>): Promise<string[]> => {
  const missing: string[] = [];
  for (const size of SCREENS) {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme });
      const element = await open();
      await element.waitFor();
      await page.locator('.skeleton, [aria-busy="true"]').first().waitFor({ state: 'detached' });
      const box = await element.boundingBox();
      if (box !== null && (await isSeen(page, box))) continue;
      missing.push(`${size.width}x${size.height} ${colorScheme}: at ${box?.y}, ${box?.height} px high`);
    }
  }
  return missing;
};
