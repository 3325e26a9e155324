// Options of esbuild for the executables and the client library, shared by the build of a checkout and by a release.
import { readFileSync } from 'node:fs';
import { dirname, join, parse } from 'node:path';
import { BUNDLE_PLUGINS } from './bundle-plugins.mjs';
import { ROOT } from './paths.mjs';

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const unit = readFileSync(join(ROOT, 'deploy/systemd/tunnel-server.service'), 'utf8');

// CommonJS packages inside an ES module bundle still ask for these names.
const COMMONJS_NAMES = [
  "import { createRequire as __createRequire } from 'node:module';",
  "import { fileURLToPath as __fileURLToPath } from 'node:url';",
  'const require = __createRequire(import.meta.url);',
  'const __filename = __fileURLToPath(import.meta.url);',
  "const __dirname = __fileURLToPath(new URL('.', import.meta.url));",
].join(' ');

/** Options that hold for every bundle, an ES module or not. */
export const COMMON_OPTIONS = {
  absWorkingDir: ROOT,
  bundle: true,
  write: false,
  platform: 'node',
  conditions: ['source'],
  legalComments: 'none',
  // V8 keeps the source text in memory, and needs two bytes per character if a character is not Latin-1, as in comments. Names stay
  // unchanged and lines stay short, so that a stack trace is readable.
  minifyWhitespace: true,
  lineLimit: 160,
  define: { __TUNNEL_VERSION__: JSON.stringify(version), __TUNNEL_UNIT__: JSON.stringify(unit) },
  logLevel: 'warning',
  plugins: BUNDLE_PLUGINS,
};

// Native code stays in node_modules. The addon of pg is optional and unused; udx-native is optional and loaded for direct p2p connections.
const EXTERNAL = ['@node-rs/argon2', 'pg-native', 'udx-native'];

/** Options of an entry of BUNDLES. `isSplit`: code that a command loads on demand goes into separate files. */
export const bundleOptions = ({ entry, outfile, isSplit = false }) => {
  const name = parse(outfile).name;
  const common = { ...COMMON_OPTIONS, outdir: dirname(outfile), target: 'node20', external: EXTERNAL };
  // In a CommonJS file, code that is imported on demand runs on demand.
  if (outfile.endsWith('.cjs'))
    return {
      ...common,
      entryPoints: [{ in: entry, out: name }],
      outExtension: { '.js': '.cjs' },
      format: 'cjs',
      supported: { 'dynamic-import': false },
      // The package ws does not search for an addon that the client never has.
      define: { ...COMMON_OPTIONS.define, 'process.env.WS_NO_BUFFER_UTIL': '"1"' },
    };
  return {
    ...common,
    entryPoints: [{ in: entry, out: name }],
    splitting: isSplit,
    // The files of a bundle find each other in the same folder.
    chunkNames: `${name}-[hash]`,
    format: 'esm',
    banner: { js: COMMONJS_NAMES },
  };
};
