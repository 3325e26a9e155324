// How the dashboard is built: files of its own alone, nothing inlined that the page's policy would refuse.
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';
import { withoutDescriptions } from './vite-without-descriptions.ts';

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

export default defineConfig({
  base: '/app/',
  plugins: [withoutJsonSchema, react(), tailwindcss(), withoutDescriptions()],
  // Workspace packages come from their sources, as everywhere in the house.
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
