// How the dashboard is built: files of its own alone, nothing inlined that the page's policy would refuse.
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

interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly name?: string;
  readonly callee?: SyntaxNode;
  readonly object?: SyntaxNode;
  readonly property?: SyntaxNode;
  readonly arguments?: readonly SyntaxNode[];
}

interface Cut {
  readonly start: number;
  readonly end: number;
  readonly instead: string;
}

const METAS = /\/packages\/contract\/src\//;
const CATALOGUE = /\/packages\/errors\/src\/catalogue\.ts$/;

/**
 * Leaves out of the page what the project says for its documents and its command line alone: `.meta({ … })` of the API's schemas,
 * and what the catalogue of errors proposes to do next, which no page shows.
 */
const withoutDescriptions = (): Plugin => ({
  name: 'without-descriptions',
  // After the types are gone, which the parser does not read.
  enforce: 'post',
  transform(code, id) {
    const find = (METAS.test(id) && metaOf) || (CATALOGUE.test(id) && adviceOf);
    if (!find) return null;
    const cuts: Cut[] = [];
    visit(this.parse(code), (node) => {
      const cut = node.type === 'CallExpression' ? find(node) : null;
      if (cut !== null) cuts.push(cut);
    });
    return { code: without(code, cuts), map: null };
  },
});

const metaOf = ({ callee, end }: SyntaxNode): Cut | null =>
  callee?.property?.name === 'meta' && callee.object ? { start: callee.object.end, end, instead: '' } : null;

/** The last of `entry(status, retryable, text, next)`. */
const adviceOf = ({ callee, arguments: given = [] }: SyntaxNode): Cut | null => {
  const advice = callee?.name === 'entry' ? given[3] : undefined;
  return advice === undefined ? null : { start: advice.start, end: advice.end, instead: "''" };
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

export default defineConfig({
  base: '/app/',
  plugins: [withoutJsonSchema, react(), tailwindcss(), withoutDescriptions()],
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
