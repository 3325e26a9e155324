// How the dashboard is built: files of its own alone, nothing inlined that the page's policy would refuse.
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  base: '/app/',
  plugins: [react(), tailwindcss()],
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
