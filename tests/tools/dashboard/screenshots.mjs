// Pictures of every page of the dashboard, in light and dark, on a desk and on a phone, from a real stack with example data.
import { runScript } from '../groups/lib/script.mjs';
import { loadBundled } from '../platform/lib/load-bundled.mjs';

const USAGE = `usage: node tests/tools/dashboard/screenshots.mjs
Writes docs/screenshots/<page>-<desktop|phone>-<light|dark>.png; a minute or two. Needs a Chromium, as the browser tests do.`;

await runScript(
  { name: 'pictures of the dashboard', usage: USAGE, options: {}, limitSecs: () => 900 },
  async (tools) => {
    const entry = new URL('lib/take-screenshots.ts', import.meta.url);
    return (await loadBundled(entry, 'take-screenshots')).takeScreenshots(tools);
  },
);
