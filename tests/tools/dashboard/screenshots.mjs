// Pictures of every page of the dashboard, in light and dark, on a desk and on a phone, from a real stack with example data.
import { runScript } from '../groups/lib/script.mjs';
import { loadTypescript } from './lib/load-typescript.mjs';

const USAGE = `usage: node tests/tools/dashboard/screenshots.mjs
Writes docs/screenshots/<page>-<desktop|phone>-<light|dark>.png; a minute or two. Needs a Chromium, as the browser tests do.`;

await runScript({ name: 'pictures of the dashboard', usage: USAGE, options: {}, limitSecs: () => 900 }, async (tools) =>
  (await loadTypescript('take-screenshots')).takeScreenshots(tools),
);
