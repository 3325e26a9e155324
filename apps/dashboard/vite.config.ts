// How the dashboard is built: files of its own alone, nothing inlined that the page's policy would refuse.
import { readFileSync } from 'node:fs';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** The pages check answers against schemas; they never write a document of them. That part of zod is 5 kB of the first load. */
const withoutJsonSchema: Plugin = {
  name: 'without-json-schema',
  enforce: 'pre',
  transform: {
    filter: { id: /zod\/v4\/core\/(to-json-schema|json-schema-processors)\.js$/ },
    handler: (code) => {
      const names = [...code.matchAll(/^export (?:const|function) (\w+)/gm)].map(([, name]) => name);
      if (names.length === 0) throw new Error('zod is not as it was: its writer of JSON Schema was not found');
      return { code: names.map((name) => `export const ${name} = () => {};`).join('\n'), map: null };
    },
  },
};

/** A page never shows what zod says about an invalid answer, only that the answer is invalid. The words are 1 kB of the first load. */
const withoutZodWords: Plugin = {
  name: 'without-zod-words',
  enforce: 'pre',
  transform: {
    filter: { id: /zod\/v4\/locales\/en\.js$/ },
    handler: (code) => {
      if (!code.includes('localeError')) throw new Error('zod is not as it was: its words were not found');
      return { code: "export default () => ({ localeError: () => 'invalid' });", map: null };
    },
  },
};

interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly name?: string;
  readonly callee?: SyntaxNode;
  readonly object?: SyntaxNode;
  readonly property?: SyntaxNode;
  readonly arguments?: readonly SyntaxNode[];
  readonly key?: SyntaxNode;
  readonly value?: SyntaxNode;
}

interface Cut {
  readonly start: number;
  readonly end: number;
  readonly instead: string;
}

const METAS = /\/packages\/contract\/src\//;
const CATALOGUE = /\/packages\/errors\/src\/catalogue\.ts$/;

/** Errors that a page makes itself. Of all others the API says the words. */
const OWN_ERRORS = /^(CLIENT_|BILLING_|API_BAD_REQUEST$|INTERNAL$)/;

/**
 * Leaves out of the page what the project says for its documents and its command line alone: `.meta({ … })` of the API's schemas,
 * what the catalogue of errors proposes to do next, which no page shows, and the texts of errors that come with their own.
 */
const withoutDescriptions = (): Plugin => ({
  name: 'without-descriptions',
  // After the types are gone, which the parser does not read.
  enforce: 'post',
  transform(code, id) {
    const wordless = [...code.matchAll(/new Fault\(\s*['"](\w+)/g)].find(([, name = '']) => !OWN_ERRORS.test(name));
    if (wordless !== undefined) this.error(`${wordless[1]} has no text in the page: let OWN_ERRORS know it`);
    const find = (METAS.test(id) && metaOf) || (CATALOGUE.test(id) && wordsOf);
    if (!find) return null;
    const cuts: Cut[] = [];
    visit(this.parse(code), (node) => cuts.push(...find(node)));
    return { code: without(code, cuts), map: null };
  },
});

const metaOf = ({ type, callee, end }: SyntaxNode): Cut[] =>
  type === 'CallExpression' && callee?.property?.name === 'meta' && callee.object
    ? [{ start: callee.object.end, end, instead: '' }]
    : [];

/** Of `CODE: entry(status, retryable, text, next)`. */
const wordsOf = ({ key, value }: SyntaxNode): Cut[] => {
  if (key?.name === undefined || value?.callee?.name !== 'entry') return [];
  const [, , text, next] = value.arguments ?? [];
  const unused = OWN_ERRORS.test(key.name) ? [next] : [text, next];
  return unused.flatMap((node) => (node === undefined ? [] : [{ start: node.start, end: node.end, instead: "''" }]));
};

const visit = (node: unknown, see: (node: SyntaxNode) => void): void => {
  if (typeof node !== 'object' || node === null) return;
  if ('type' in node) see(node as SyntaxNode);
  for (const child of Object.values(node)) visit(child, see);
};

/** Cuts do not overlap, except those inside another one. */
const without = (code: string, cuts: readonly Cut[]): string => {
  let kept = '';
  let from = 0;
  for (const { start, end, instead } of [...cuts].sort((one, other) => one.start - other.start)) {
    if (start < from) continue;
    kept += code.slice(from, start) + instead;
    from = end;
  }
  return kept + code.slice(from);
};

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  readonly version: string;
};

export default defineConfig({
  base: '/app/',
  define: { __TUNNEL_VERSION__: JSON.stringify(version) },
  plugins: [withoutJsonSchema, withoutZodWords, react(), tailwindcss(), withoutDescriptions()],
  // Workspace packages come from their sources, as everywhere in the project.
  resolve: { conditions: ['source', 'module', 'browser', 'development|production'] },
  build: {
    // What the first load is made of is summed up from it.
    manifest: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    reportCompressedSize: false,
  },
});
