// Generates docs/limits.md from tagged limits: the comment above a constant, a property of an object or a key of server.toml's schema has
// a line `@limit area: what is limited | what happens at it`. The value is read from the syntax tree. `node scripts/limits-page.mjs`
// writes the page.
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseSync, visitorKeys } from 'oxc-parser';
import { filesBelow, ROOT, workspaceDirs } from './lib/paths.mjs';

/** Areas of limits in the order of the page, each for a group of people affected by the limits. */
const AREAS = {
  visitors: ['Visitors', 'Limits for connections and requests to a tunnel.'],
  tunnels: ['Tunnels', 'Limits for clients and their tunnels.'],
  policies: ['Policies', 'Limits for the rules of a tunnel.'],
  accounts: ['Accounts', 'Limits for an account of the platform, its keys, names, domains and emails.'],
  api: ['API', "Limits for callers of the platform's API and of an edge's API."],
  mcp: ['MCP', "Limits for the platform's MCP server, `tunnel mcp` and published MCP servers."],
  dashboard: ['Requests in the dashboard', 'Limits for captured requests in the dashboard, the API and the inspector.'],
  operator: ['Operators', 'Limits that only operators can reach.'],
};

const HEAD = `# Limits

Look up the limits that visitors, users and operators can reach, and which of them you can change. The third column names the key in \`server.toml\`
([configuration.md](configuration.md)); *fixed* limits cannot be changed. [errors.md](errors.md) explains the error codes.

This page is generated from tags in the source code: \`node scripts/limits-page.mjs\`.
`;

/** Returns every tagged limit of the product, as { area, what, happens, value, key, place }. */
export function readLimits() {
  return workspaceDirs(ROOT)
    .flatMap((dir) => filesBelow(join(ROOT, dir, 'src')))
    .filter((file) => file.endsWith('.ts') && !/\.(?:test|fixture|conformance)\.ts$/.test(file))
    .flatMap(limitsOf);
}

const TAG = /@limit (\w+): (.+?) \| (.+?)\s*(?:\*\/|\n)/;

function limitsOf(file) {
  const text = readFileSync(file, 'utf8');
  if (!text.includes('@limit ')) return [];
  const { program, comments } = parseSync(file, text);
  const constants = new Map();
  const named = [];
  walk(program, [], (node, parents) => {
    if (node.type === 'VariableDeclarator' && node.init) {
      constants.set(node.id.name, node.init);
      named.push({ name: node.id.name, value: node.init, start: parents.at(-1).start, path: [] });
    }
    if (node.type === 'Property')
      named.push({ name: nameOf(node), value: node.value, start: node.start, path: parents });
  });
  const byStart = named.toSorted((a, b) => a.start - b.start);
  return comments
    .filter(({ type, value }) => type === 'Block' && value.includes('@limit '))
    .map((comment) => {
      const place = `${relative(ROOT, file)}:${text.slice(0, comment.start).split('\n').length}`;
      const [, area, what, happens] = TAG.exec(`${comment.value}\n`) ?? [];
      const limit = byStart.find(({ start }) => start >= comment.end);
      if (area === undefined || !AREAS[area]) throw new Error(`${place}: expected "@limit area: what | what happens"`);
      if (limit === undefined) throw new Error(`${place}: no limit follows this tag`);
      return { area, what, happens, place, ...valueOf(limit, constants, place) };
    });
}

/** Returns a value as text, and the key of server.toml that sets the value. */
function valueOf({ name, value, path }, constants, place) {
  const key = keyOf(name, value, path);
  const shown = key === undefined ? evaluate(value, constants) : evaluate(defaultOf(value), constants);
  if (shown === undefined) throw new Error(`${place}: the value of ${name} cannot be read from the code`);
  return { name, key, value: Array.isArray(shown) ? shown.join('–') : inWords(name, shown) };
}

/** Returns a key such as `[limits] connections_per_tunnel` for a property of `limitsSchema` or of a nested section. */
function keyOf(name, value, path) {
  const schema = path.find(
    ({ type, id }) => type === 'VariableDeclarator' && /Schema$|^BUILT_IN_PLANS$/.test(id.name ?? ''),
  );
  if (!schema || name.toUpperCase() === name) return undefined;
  const root = schema.id.name === 'BUILT_IN_PLANS' ? 'platform.plans' : snake(schema.id.name.replace(/Schema$/, ''));
  const inner = path.filter(({ type, value: of }) => type === 'Property' && of !== value).map(nameOf);
  return `[${[root, ...inner].join('.')}] ${name}`;
}

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const nameOf = ({ key }) => key.name ?? String(key.value);

/** Returns the argument of `.default(…)`. A value without `.default(…)` is returned unchanged. */
function defaultOf(node) {
  if (node?.type !== 'CallExpression') return node;
  return node.callee.property?.name === 'default' ? node.arguments[0] : defaultOf(node.callee.object);
}

const OPERATIONS = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '**': (a, b) => a ** b,
};

/** Properties that hold the number to show, in limits with a rate or a number of concurrent items. */
const COUNTS = new Set(['perWindow', 'perSecond', 'perKey', 'atOnce']);

/** Evaluates an expression of literals, arithmetic and constants of the same file to a number or a list of numbers. */
function evaluate(node, constants) {
  switch (node?.type) {
    case 'Literal':
      return typeof node.value === 'number' ? node.value : undefined;
    case 'Identifier':
      return constants.has(node.name) ? evaluate(constants.get(node.name), constants) : undefined;
    case 'ObjectExpression':
      return evaluate(node.properties.find((one) => COUNTS.has(nameOf(one)))?.value, constants);
    case 'ArrayExpression':
      return node.elements.map((element) => evaluate(element, constants));
    case 'BinaryExpression': {
      const left = evaluate(node.left, constants);
      const right = evaluate(node.right, constants);
      return left === undefined || right === undefined ? undefined : OPERATIONS[node.operator]?.(left, right);
    }
    default:
      return undefined;
  }
}

const BYTES = [
  [2 ** 30, 'GiB'],
  [2 ** 20, 'MiB'],
  [1024, 'KiB'],
  [1, 'bytes'],
];
const MILLISECONDS = [
  [86_400_000, 'days'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
  [1, 'ms'],
];

/** Formats a value with the unit at the end of its name: `64 KiB`, `30 s`, `10,000`. */
export function inWords(name, value) {
  const unit = (/[a-z]/.test(name) ? snake(name) : name).toUpperCase();
  if (unit.endsWith('_SHARE')) return `${value * 100} %`;
  if (/(?:^|_)BYTES(?:_|$)/.test(unit)) return inSteps(value, BYTES);
  if (unit.endsWith('_MS')) return inSteps(value, MILLISECONDS);
  if (unit.endsWith('_SECS')) return inSteps(value * 1000, MILLISECONDS);
  if (unit.endsWith('_HOURS')) return `${value} h`;
  if (unit.endsWith('_DAYS')) return `${value} days`;
  const count = value.toLocaleString('en-US');
  return /_CHAR(?:ACTER)?S$/.test(unit) ? `${count} characters` : count;
}

/** Formats a value in the largest unit that divides the value: 90 s rather than 1.5 min, 24 h rather than 1 day. */
function inSteps(value, steps) {
  const [size, unit] =
    steps.find(([step], index) => value >= (index === 0 ? 2 : 1) * step && value % step === 0) ?? steps.at(-1);
  return `${(value / size).toLocaleString('en-US')} ${unit}`;
}

/** Makes the text of the limits page. */
export function limitsPage(limits = readLimits()) {
  const parts = Object.entries(AREAS).map(([area, [title, about]]) => {
    const rows = limits.filter((limit) => limit.area === area).toSorted((a, b) => a.what.localeCompare(b.what, 'en'));
    const lines = rows.map(
      ({ what, value, key, happens }) => `| ${what} | ${value} | ${key ? `\`${key}\`` : 'fixed'} | ${happens} |`,
    );
    return [
      `## ${title}`,
      '',
      about,
      '',
      '| Limit | Default | Set by | At the limit |',
      '|---|---|---|---|',
      ...lines,
      '',
    ].join('\n');
  });
  return [HEAD, ...parts].join('\n');
}

function walk(node, parents, visit) {
  visit(node, parents);
  for (const key of visitorKeys[node.type] ?? []) {
    for (const next of [node[key]].flat()) if (next) walk(next, [...parents, node], visit);
  }
}

if (process.argv[1] === import.meta.filename) writeFileSync(join(ROOT, 'docs/limits.md'), limitsPage());
