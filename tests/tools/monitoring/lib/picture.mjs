// Draws a dashboard as an SVG with light and dark colors, from data that Prometheus recorded.
import { drawSvg, escapeXml, SVG_HEAD } from '../../../../scripts/lib/svg.mjs';

const WIDTH = 880;
const GAP = 24;
const COLUMN = (WIDTH - GAP) / 2;
const STAT_HEIGHT = 62;
const STATS_PER_ROW = 4;
const PANEL_HEIGHT = 152;
const PLOT = { left: 56, top: 24, height: 84 };
const LEGEND_LINES = 2;
const CHAR = 5.6;
/** Maximum number of lines in a panel; the largest are drawn. */
const LINES_MAX = 8;

const COLORS = ['#0969da', '#1a7f37', '#bc4c00', '#8250df', '#bf3989', '#9a6700', '#1b7c83', '#cf222e'];
const DARK_COLORS = ['#4493f8', '#3fb950', '#db6d28', '#ab7df8', '#db61a2', '#d29922', '#39c5cf', '#f85149'];

const classes = (colors) => colors.map((color, n) => `.c${n}{stroke:${color}}.k${n}{fill:${color}}`).join('');
const STYLE = {
  light: `text{font-size:11px}.panel{font-size:12px;font-weight:600}.stat{font-size:22px;font-weight:600}
.grid{stroke:#d8dee4}.box{fill:none;stroke:#d8dee4}polyline{fill:none;stroke-width:1.5;stroke-linejoin:round}
${classes(COLORS)}`,
  dark: `.grid,.box{stroke:#3d444d}${classes(DARK_COLORS)}`,
};

const fixed = (number) => String(Number(number.toFixed(1)));

const scaled = (value, steps, units) => {
  let at = 0;
  let left = value;
  while (Math.abs(left) >= steps && at < units.length - 1) {
    left /= steps;
    at += 1;
  }
  return `${Number(left.toPrecision(3))} ${units[at]}`.trim();
};
const plain = (value) =>
  Math.abs(value) >= 10_000 ? scaled(value, 1000, ['', 'k', 'M']) : String(Number(value.toPrecision(3)));
const bytes = (value) => scaled(value, 1000, ['B', 'kB', 'MB', 'GB', 'TB']);

function seconds(value) {
  if (value === 0) return '0 s';
  if (value < 1)
    return value < 0.001 ? `${Number((value * 1e6).toPrecision(3))} µs` : `${Number((value * 1e3).toPrecision(3))} ms`;
  const [size, unit] = [
    [86_400 * 365, 'years'],
    [86_400, 'days'],
    [3600, 'h'],
    [60, 'min'],
    [1, 's'],
  ].find(([one]) => value >= one);
  return `${Number((value / size).toPrecision(3))} ${unit}`;
}

const UNITS = {
  none: plain,
  d: (value) => `${plain(value)} d`,
  s: seconds,
  bytes,
  Bps: (value) => `${bytes(value)}/s`,
  percentunit: (value) => `${Number((value * 100).toPrecision(3))} %`,
};
const textOf = (value, unit) => (UNITS[unit] ?? ((rate) => `${plain(rate)}/s`))(value);

/** The name of a series, as Grafana makes it from the panel's legend. */
const legendOf = (format, metric) => format.replaceAll(/\{\{(\w+)\}\}/g, (_, label) => metric[label] ?? '').trim();

/** The next round number for the top of a scale. */
function topOf(most) {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((top) => top >= most * 0.999);
}

/**
 * @param {{ title: string, subtitle: string, start: number, end: number, panels: { panel: object, series: { metric: Record<string, string>, legendFormat: string, values: [number, string][] }[], empty: string | undefined }[] }} what
 * Times are in seconds. `empty` is the text of a panel without data.
 * @returns {string} SVG
 */
export function drawDashboard({ title, subtitle, start, end, panels }) {
  const stats = panels.filter(({ panel }) => panel.type === 'stat');
  const plots = panels.filter(({ panel }) => panel.type !== 'stat');
  const statRows = Math.ceil(stats.length / STATS_PER_ROW);
  const plotsAt = SVG_HEAD + statRows * (STAT_HEIGHT + 10);
  const height = plotsAt + Math.ceil(plots.length / 2) * PANEL_HEIGHT + 4;
  const description = `Panels: ${panels.map(({ panel }) => panel.title).join(', ')}.`;
  const content = [
    ...stats.flatMap((one, n) =>
      drawStat(
        one,
        (n % STATS_PER_ROW) * (WIDTH / STATS_PER_ROW),
        SVG_HEAD + Math.floor(n / STATS_PER_ROW) * (STAT_HEIGHT + 10),
      ),
    ),
    ...plots.flatMap((one, n) =>
      drawPlot(one, { x: (n % 2) * (COLUMN + GAP), y: plotsAt + Math.floor(n / 2) * PANEL_HEIGHT, start, end }),
    ),
  ];
  return drawSvg({ width: WIDTH, height, title, subtitle, description, style: STYLE, content });
}

function drawStat({ panel, series, empty }, x, y) {
  const { unit } = panel.fieldConfig.defaults;
  const texts = series.map(({ metric, legendFormat, values }) =>
    panel.options.textMode === 'name' ? legendOf(legendFormat, metric) : textOf(Number(values.at(-1)[1]), unit),
  );
  return [
    `<rect class="box" x="${fixed(x + 0.5)}" y="${y}" width="${fixed(WIDTH / STATS_PER_ROW - 12)}" height="${STAT_HEIGHT}" rx="4"/>`,
    `<text class="panel" x="${fixed(x + 10)}" y="${y + 18}">${escapeXml(panel.title)}</text>`,
    `<text class="stat" x="${fixed(x + 10)}" y="${y + 48}">${escapeXml(texts.join(', ') || (empty ?? ''))}</text>`,
  ];
}

const peakOf = ({ values }) => Math.max(0, ...values.map(([, value]) => Number(value)).filter(Number.isFinite));

function drawPlot({ panel, series, empty }, { x, y, start, end }) {
  const { unit } = panel.fieldConfig.defaults;
  const lines = series.toSorted((one, other) => peakOf(other) - peakOf(one)).slice(0, LINES_MAX);
  const top = topOf(Math.max(0, ...lines.map(peakOf)));
  const plot = { x: x + PLOT.left, y: y + PLOT.top, width: COLUMN - PLOT.left, height: PLOT.height };
  const grid = [0, 0.5, 1].flatMap((part) => {
    const at = fixed(plot.y + plot.height * (1 - part));
    return [
      `<path class="grid" d="M${plot.x} ${at}h${plot.width}"/>`,
      ...(lines.length > 0
        ? [
            `<text class="quiet" x="${plot.x - 6}" y="${fixed(Number(at) + 4)}" text-anchor="end">${escapeXml(textOf(top * part, unit))}</text>`,
          ]
        : []),
    ];
  });
  const nothing = `<text class="quiet" x="${plot.x + plot.width / 2}" y="${plot.y + plot.height / 2 - 6}" text-anchor="middle">${escapeXml(empty ?? '')}</text>`;
  return [
    `<text class="panel" x="${x}" y="${y + 12}">${escapeXml(panel.title)}</text>`,
    ...grid,
    ...(lines.length === 0 ? [nothing] : lines.map((line, n) => drawLine(line, n, { plot, top, start, end }))),
    ...drawLegend(lines, plot),
  ];
}

function drawLine({ values }, n, { plot, top, start, end }) {
  const points = values
    .map(([at, value]) => [at, Number(value)])
    .filter(([, value]) => Number.isFinite(value))
    .map(([at, value]) => {
      const x = plot.x + (plot.width * (at - start)) / (end - start);
      return `${fixed(x)},${fixed(plot.y + plot.height * (1 - value / top))}`;
    });
  return `<polyline class="c${n}" points="${points.join(' ')}"/>`;
}

/** Names of the lines below a plot, in at most two rows. */
function drawLegend(lines, plot) {
  const drawn = [];
  let [x, row] = [plot.x, 0];
  for (const [n, { legendFormat, metric }] of lines.entries()) {
    const name = legendOf(legendFormat, metric) || 'total';
    const width = 16 + name.length * CHAR;
    if (x + width > plot.x + plot.width && x > plot.x) [x, row] = [plot.x, row + 1];
    if (row === LEGEND_LINES) break;
    const y = plot.y + plot.height + 16 + row * 14;
    drawn.push(
      `<rect class="k${n}" x="${fixed(x)}" y="${y - 8}" width="8" height="8" rx="2"/>`,
      `<text class="quiet" x="${fixed(x + 11)}" y="${y}">${escapeXml(name)}</text>`,
    );
    x += width + 6;
  }
  return drawn;
}
