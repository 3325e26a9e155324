// Takes screenshots of every dashboard page in light and dark themes, on a desktop and on a phone, from a real stack with example data.

import { loadBundled } from '../lib/load-bundled.mjs';
import { runScript } from '../lib/script.mjs';

const USAGE = `usage: node tests/tools/dashboard/screenshots.mjs [--docs]
Writes .cache/screenshots/<page>-<desktop|phone>-<light|dark>.png; --docs replaces the pictures of docs/screenshots with the new ones.
A minute or two. Needs a Chromium, as the browser tests do.`;

await runScript(
  { name: 'pictures of the dashboard', usage: USAGE, options: { docs: false }, limitSecs: () => 900 },
  async (tools) => {
    const entry = new URL('lib/take-screenshots.ts', import.meta.url);
    return (await loadBundled(entry, 'take-screenshots')).takeScreenshots(tools);
  },
);
