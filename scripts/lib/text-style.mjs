// How plainly the texts of the product are written: pages, help, terminal output, log lines, errors, dashboard, mails. A text is a paragraph, a list
// entry or a table cell of a page, or a string of a source file that has at least three words. Each area of the product has two figures, as the
// comments have (comment-style.mjs): the mean share of pronouns, and the share of texts with a banned word or phrase. The worst habits have a pattern
// each, and no text may match one.
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseSync } from 'oxc-parser';
import { figuresOf, judge, readStyle, STYLE_BOUNDS } from './comment-style.mjs';
import { FOR_TESTS } from './import-rules.mjs';
import { filesBelow, workspaceDirs } from './paths.mjs';
import { walkTree } from './syntax-tree.mjs';

/** The worst habits: what to search for, and what to write instead. */
export const PATTERNS = [
  [/\bby (?:itself|themselves|ourselves|yourself)\b/i, 'automatically, or leave it out'],
  [
    /\bof (?:ours|yours|theirs|its own|their own|your own|our own|one's own)\b/i,
    'our, your, their, its; or "a separate …"',
  ],
  [
    /\b(?:whoever|whomever|whom|nobody|somebody|everybody|anybody)\b/i,
    'name the person or the program: a visitor who …, no other account',
  ],
  [/\banew\b/i, 'again; recreated'],
  [/\bfor good\b/i, 'permanently'],
  [/\bin (?:clear|earnest)\b/i, 'unencrypted; really'],
  [/\b(?:is|are|was|were|be) over(?=[.,;:)]|$)/i, 'has ended, has expired'],
  [
    /\blead(?:s|ing)? (?:here|there|to (?:this|the|your|its|another|a) (?:server|edge|machine|platform|address|domain))\b/i,
    'points to',
  ],
  [/\b(?:goes|go|went|going) on\b(?! the| a| to)/i, 'continues, keeps working'],
  [/\b(?:told of|tells of|tell of|is told|are told|was told|were told)\b/i, 'reported, notified, logged'],
  [/\breads? (?:a )?[345]\d\d\b/i, 'gets a 502'],
  [/\b(?:seldom|so far as|as of every|of before|the one before|ones? before)\b/i, 'rarely; previous, earlier'],
  [/\b(?:comes to be|becomes? of (?:it|them))\b/i, 'is created; its result'],
  [/\b\w+ alone[.;:)]|\balone$/i, 'only'],
  [
    /(?:^|[.;:] )(?:What|Who|Whose) [a-z ]{2,40} (?:is|are|was|has|have|gets?|sees?|reads?|stays?)\b(?![^.]*\?)/,
    'name the subject: the setting that …, a visitor who …',
  ],
];

const LEAST_WORDS = 3;
/** The number of words between spaces: names of fields, codes and paths are none. */
const words = (text) =>
  text.split(/\s+/).filter((part) => /^["'(“]?(?:[A-Za-z]?[a-z'’-]+|[A-Z]{1,6}|I)[.,;:!?)"'”]*$/.test(part)).length;

/** The texts of a page, as { line, text }: code blocks, addresses of links, HTML and headings of tables are left out. */
export function textsOfPage(source) {
  const texts = [];
  let fence = '';
  let open;
  const close = () => {
    if (open !== undefined) texts.push(open);
    open = undefined;
  };
  const add = (line, text) => {
    close();
    open = { line, text };
  };
  for (const [index, raw] of source.split('\n').entries()) {
    const line = index + 1;
    const mark = /^\s*(```+|~~~+)/.exec(raw)?.[1];
    if (fence !== '' || mark !== undefined) {
      close();
      if (mark !== undefined && (fence === '' || mark === fence)) fence = fence === '' ? mark : '';
      continue;
    }
    if (/^\s*$/.test(raw) || /^\s*<[^>]*>\s*$/.test(raw) || /^\s*\|[\s:|-]+\|\s*$/.test(raw)) {
      close();
      continue;
    }
    if (/^\s*\|/.test(raw)) {
      for (const cell of raw.split(/(?<!\\)\|/).slice(1, -1)) add(line, cell);
      close();
    } else if (/^\s*(?:[-*+]|\d+\.)\s|^#|^>/.test(raw)) add(line, raw.replace(/^\s*(?:[-*+]|\d+\.|#+|>)\s*/, ''));
    else if (open === undefined) add(line, raw);
    else open.text += ` ${raw}`;
  }
  close();
  return texts
    .map(({ line, text }) => ({ line, text: plain(text) }))
    .filter(({ text }) => words(text.replace(/`[^`]*`/g, ' ')) >= LEAST_WORDS);
}

const plain = (text) =>
  text
    .replace(/!\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    // Placeholders in code, such as `<data_dir>/run.json`, are no HTML.
    .replace(/(`[^`]*`)|<[^>]+>/g, (_, code) => code ?? ' ')
    .replace(/(`[^`]*`)|\*\*|__/g, (_, code) => code ?? '')
    .replace(/\s+/g, ' ')
    .trim();

/** SQL and lists of class names. */
const NO_PROSE =
  /^\s*(?:select|insert into|update|delete from|create|alter|with|from|where|grant|revoke|drop|listen|lock table|truncate|left join|order by)\b[\s\S]*(?:\b\w+[._]\w+|=)|(?:^|\s)[a-z]+-[a-z0-9[]+(?:\s+[a-z:]+-[\w[\]./-]+)+(?:\s|$)/;

const CODE_ATTRIBUTES = new Set([
  'className',
  'class',
  'd',
  'viewBox',
  'style',
  'points',
  'transform',
  'id',
  'htmlFor',
]);

/** The strings of a source file that are prose, as { line, text }. A value in a template stands as `{}`. */
export function textsOfSource(file, source) {
  const texts = [];
  const lineAt = (start) => source.slice(0, start).split('\n').length;
  const add = (node, text) => {
    const said = text.replace(/\s+/g, ' ').trim();
    if (words(said.replace(/`[^`]*`|\{\w*\}/g, ' ')) < LEAST_WORDS || NO_PROSE.test(text)) return;
    texts.push({ line: lineAt(node.start), text: said });
  };
  walkTree(parseSync(file, source).program, (node, parents) => {
    const parent = parents.at(-1);
    if (node.type === 'ImportDeclaration' || node.type.startsWith('TS'))
      return node.type.startsWith('TSAs') || node.type.startsWith('TSSat') || node.type.startsWith('TSNon');
    if (node.type === 'JSXAttribute' && CODE_ATTRIBUTES.has(node.name.name)) return false;
    if (node.type === 'TaggedTemplateExpression') return false;
    if (node.type === 'JSXElement' || node.type === 'JSXFragment') addElement(node, parents, add);
    if (node.type === 'Literal' && typeof node.value === 'string' && !joined(parent)) add(node, node.value);
    if (node.type === 'TemplateLiteral') add(node, node.quasis.map((part) => part.value.cooked ?? '').join('{}'));
    if (node.type === 'BinaryExpression' && joined(node) && !joined(parent)) add(node, sumOf(node));
    return true;
  });
  return texts;
}

const joined = (node) => node?.type === 'BinaryExpression' && node.operator === '+';

function sumOf(node) {
  if (joined(node)) return sumOf(node.left) + sumOf(node.right);
  return node.type === 'Literal' && typeof node.value === 'string' ? node.value : '{}';
}

/** The words of an element and of the elements inside its sentences are one text. */
function addElement(node, parents, add) {
  const parent = parents.at(-1);
  const inSentence =
    (parent?.type === 'JSXElement' || parent?.type === 'JSXFragment') &&
    parent.children.some((child) => child.type === 'JSXText' && child.value.trim() !== '');
  if (inSentence || !node.children.some((child) => child.type === 'JSXText' && child.value.trim() !== '')) return;
  add(node, spokenOf(node));
}

const spokenOf = (node) =>
  node.children
    .map((child) => {
      if (child.type === 'JSXText') return child.value;
      if (child.type === 'JSXElement') return child.openingElement.name.name === 'code' ? '`code`' : spokenOf(child);
      if (child.type === 'JSXExpressionContainer' && child.expression.type === 'Literal')
        return String(child.expression.value);
      return '{}';
    })
    .join('');

const PAGES = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'packages/client/README.md'];

/** Pages whose habit is to quote: the style page shows sentences as they should not be. */
const QUOTES = new Set(['docs/style.md']);

/** Every text in the wanted files of the checkout at `root`, as { area, file, line, text }. An area is a page or a workspace. */
export function textsOf(root, isWanted = () => true) {
  const folders = ['docs', 'examples'].flatMap((folder) => filesBelow(join(root, folder)));
  const pages = [...PAGES, ...folders.map((path) => relative(root, path))].filter(
    (file) => file.endsWith('.md') && !QUOTES.has(file) && isWanted(file),
  );
  const sources = workspaceDirs(root)
    .filter((dir) => !/testkit|simulator/.test(dir))
    .flatMap((area) =>
      filesBelow(join(root, area, 'src'))
        .map((path) => ({ area, file: relative(root, path) }))
        .filter(({ file }) => /\.tsx?$/.test(file) && !FOR_TESTS.test(file) && isWanted(file)),
    );
  return [
    ...pages.flatMap((file) =>
      textsOfPage(readFileSync(join(root, file), 'utf8')).map((text) => ({ area: file, file, ...text })),
    ),
    ...sources.flatMap(({ area, file }) =>
      textsOfSource(file, readFileSync(join(root, file), 'utf8')).map((text) => ({ area, file, ...text })),
    ),
  ];
}

/** Messages that the specification fixes to the letter. */
const FIXED_TEXTS = new Set(['load balancing is off on this edge: this tunnel is served alone']);

/** The patterns that a text matches, as advice. Code between backticks is not read. */
export const habitsOf = (text) => {
  if (FIXED_TEXTS.has(text)) return [];
  const prose = text.replace(/`[^`]*`/g, '`code`');
  return PATTERNS.filter(([pattern]) => pattern.test(prose)).map(
    ([pattern, instead]) => `"${pattern.exec(prose)[0].trim()}" → ${instead}`,
  );
};

/** Both figures of each area, as a Map. */
export function figuresByArea(texts, style = readStyle()) {
  const areas = new Map();
  for (const text of texts) areas.set(text.area, [...(areas.get(text.area) ?? []), text]);
  return new Map([...areas].map(([area, all]) => [area, { count: all.length, ...figuresOf(all, style) }]));
}

/** What is wrong with the texts: a line for each habit, and one for each area over its bounds, with its worst texts. */
export function textComplaints(texts, style = readStyle()) {
  const habits = texts.flatMap(({ file, line, text }) => habitsOf(text).map((advice) => `${file}:${line}: ${advice}`));
  const areas = [...figuresByArea(texts, style)].flatMap(([area, figures]) =>
    Object.entries(STYLE_BOUNDS)
      .filter(([figure, bound]) => figures[figure] > bound)
      .map(([figure, bound]) => `${area}: ${figure} ${figures[figure].toFixed(1)} %, at most ${bound} %`),
  );
  return [...habits, ...areas];
}

/** The texts of some files with the highest share of pronouns, worst first. */
export const worstTexts = (texts, style = readStyle()) =>
  [...texts].sort((a, b) => judge(b.text, style).pronouns - judge(a.text, style).pronouns);
