// The picture of the README: what edge and client cost beside nginx, one bar a path, drawn from the figures alone.

/** What people ask first. Every one of them, the dear ones too: a scenario that the record lacks is left out. */
const ROWS = [
  { scenario: 'http-keep-alive-50', figure: 'cpuPerRequestUs', title: 'HTTP: small GETs, connections kept open' },
  { scenario: 'http-large', figure: 'cpuPerGb', title: 'HTTP: responses of 1 MB' },
  { scenario: 'http-connect-50', figure: 'cpuPerRequestUs', title: 'HTTP: a new connection for each GET' },
  { scenario: 'tcp-echo-50', figure: 'cpuPerRoundTripUs', title: 'TCP: small round trips' },
  { scenario: 'tcp-bulk-down-1', figure: 'cpuPerGb', title: 'TCP: bulk download' },
];
const PATHS = [
  { path: 'ours', title: 'plain carriers' },
  { path: 'ours-tls', title: 'TLS 1.3 carriers' },
];

const WIDTH = 760;
const LEFT = 290;
const RIGHT = 52;
const TOP = 76;
const BAR = 14;
const ROW = 2 * BAR + 18;

/** Both themes in one file: a page that shows a picture hands the reader's theme on to it. */
const STYLE = `
  text { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2328; }
  .title { font-size: 15px; font-weight: 600; }
  .quiet { fill: #59636e; }
  .value { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
  .ours { fill: #0969da; }
  .ours-tls { fill: #7fb4ee; }
  .line { stroke: #59636e; stroke-width: 1.5; stroke-dasharray: 4 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .quiet { fill: #9198a1; }
    .value { stroke: #0d1117; }
    .ours { fill: #4493f8; }
    .ours-tls { fill: #285a99; }
    .line { stroke: #9198a1; }
  }`;

/** @returns {string} SVG */
export function renderPicture({ scenarios, machine, versions, date }) {
  const rows = ROWS.map((row) => ({ ...row, ratios: ratiosOf(scenarios, row) })).filter(
    ({ ratios }) => ratios !== null,
  );
  const most = Math.ceil(Math.max(1, ...rows.flatMap(({ ratios }) => ratios)));
  const x = (ratio) => LEFT + ((WIDTH - LEFT - RIGHT) * ratio) / most;
  const bottom = TOP + rows.length * ROW;
  const height = bottom + 30;
  const origin = `Medians of ${date.slice(0, 10)}: ${machine.cores} cores, Node.js ${versions.node.replace(/^v/, '')}, nginx ${versions.nginx}, everything on one machine`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    '<title>CPU of edge and client together, beside two nginx in series</title>',
    `<desc>${rows.map(describe).join(' ')}</desc>`,
    `<style>${STYLE}\n</style>`,
    '<text class="title" x="0" y="16">CPU of edge and client together, beside two nginx in series</text>',
    ...PATHS.map(({ path, title }, at) => legend(path, title, at * 130)),
    `<line class="line" x1="${x(1)}" x2="${x(1)}" y1="${TOP - 8}" y2="${bottom - 8}"/>`,
    `<text class="quiet" x="${x(1)}" y="${TOP - 16}" text-anchor="middle">nginx = 1</text>`,
    ...rows.flatMap((row, at) => bars(row, TOP + at * ROW, x)),
    `<text class="quiet" x="0" y="${bottom + 18}">${origin}</text>`,
    '</svg>',
    '',
  ].join('\n');
}

function ratiosOf(scenarios, { scenario, figure }) {
  const paths = scenarios.find(({ name }) => name === scenario)?.paths;
  const ratios = PATHS.map(({ path }) => paths?.[path]?.ratios[figure]?.median ?? null);
  return ratios.includes(null) ? null : ratios;
}

const describe = ({ title, ratios }) =>
  `${title}: ${PATHS.map((path, at) => `${ratios[at].toFixed(2)} with ${path.title}`).join(', ')}.`;

const legend = (path, title, left) =>
  `<rect class="${path}" x="${left}" y="32" width="12" height="12" rx="2"/><text x="${left + 18}" y="43">${title}</text>`;

const bars = ({ title, ratios }, top, x) => [
  `<text x="0" y="${top + BAR + 5}">${title}</text>`,
  ...ratios.flatMap((ratio, at) => {
    const y = top + at * (BAR + 2);
    return [
      `<rect class="${PATHS[at].path}" x="${LEFT}" y="${y}" width="${(x(ratio) - LEFT).toFixed(1)}" height="${BAR}" rx="2"/>`,
      `<text class="value" x="${(x(ratio) + 6).toFixed(1)}" y="${y + BAR - 2}">${ratio.toFixed(2)}</text>`,
    ];
  }),
];
