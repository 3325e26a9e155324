// Draws panels of horizontal bars as an SVG with light and dark colors. A page that embeds the picture passes the reader's theme on.

import { drawSvg, escapeXml, SVG_HEAD } from '../../scripts/lib/svg.mjs';
import { median } from './statistics.mjs';

const WIDTH = 860;
const GAP = 40;
const COLUMN = (WIDTH - GAP) / 2;
const LABEL = 124;
const VALUE = 62;
const BAR = 13;
const LINE = 18;
/** Maximum length of a bar as a multiple of the panel's median. */
const LONGEST = 3;
const PANEL_HEAD = 40;
const PANEL_FOOT = 20;

const STYLE = {
  light: `.panel{font-size:13px;font-weight:600}.strong{font-weight:600}.cut{stroke:#ffffff;stroke-width:3}
.ours{fill:#0969da}.peer{fill:#afb8c1}.floor{fill:#d8dee4}`,
  dark: '.ours{fill:#4493f8}.peer{fill:#656c76}.floor{fill:#3d444d}.cut{stroke:#0d1117}',
};

const heightOf = ({ bars }) => PANEL_HEAD + bars.length * LINE + PANEL_FOOT;

/**
 * @param {{ title: string, subtitle: string, foot: string, panels: { title: string, unit: string, bars: { label: string, value: number, text: string, kind: 'ours' | 'peer' | 'floor' }[] }[] }} what
 * @returns {string} SVG
 */
export function drawBars({ title, subtitle, foot, panels }) {
  const tops = [SVG_HEAD, SVG_HEAD];
  // Each panel goes below the shorter column, so that both columns end at a similar height.
  const placed = panels.map((panel) => {
    const column = tops[0] <= tops[1] ? 0 : 1;
    const at = { x: column * (COLUMN + GAP), y: tops[column] };
    tops[column] += heightOf(panel);
    return { panel, ...at };
  });
  const height = Math.max(...tops) + 24;
  return drawSvg({
    ...{ width: WIDTH, height, title, subtitle, style: STYLE, description: panels.map(describe).join(' ') },
    content: [...placed.flatMap(drawPanel), `<text class="quiet" x="0" y="${height - 6}">${escapeXml(foot)}</text>`],
  });
}

const describe = ({ title, unit, bars }) =>
  `${title} (${unit}): ${bars.map(({ label, text }) => `${label} ${text}`).join(', ')}.`;

/**
 * Returns the value for the full width. A bar that would make all other bars too short to compare is cut off; its label still shows the
 * value.
 */
function longestOf(bars) {
  const values = bars.map(({ value }) => value);
  return Math.min(Math.max(...values), LONGEST * median(values));
}

const cut = (x, top) => `<path class="cut" d="M${(x - 14).toFixed(1)} ${top + BAR + 1}l5 -${BAR + 2}"/>`;

function drawPanel({ panel: { title, unit, bars }, x, y }) {
  const most = longestOf(bars);
  const room = COLUMN - LABEL - VALUE;
  return [
    `<text class="panel" x="${x}" y="${y + 16}">${escapeXml(title)}</text>`,
    `<text class="quiet" x="${x}" y="${y + 32}">${escapeXml(unit)}</text>`,
    ...bars.flatMap(({ label, value, text, kind }, at) => {
      const top = y + PANEL_HEAD + at * LINE;
      const width = Math.max(1, (room * Math.min(value, most)) / most);
      const weight = kind === 'ours' ? ' class="strong"' : '';
      return [
        `<text${weight} x="${x + LABEL - 8}" y="${top + BAR - 2}" text-anchor="end">${escapeXml(label)}</text>`,
        `<rect class="${kind}" x="${x + LABEL}" y="${top}" width="${width.toFixed(1)}" height="${BAR}" rx="2"/>`,
        ...(value > most ? [cut(x + LABEL + width, top)] : []),
        `<text${weight} x="${(x + LABEL + width + 6).toFixed(1)}" y="${top + BAR - 2}">${escapeXml(text)}</text>`,
      ];
    }),
  ];
}
