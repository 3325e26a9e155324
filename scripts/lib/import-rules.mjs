// Who may import whom. The table of ARCHITECTURE.md, as data.

/** Own packages that each one may import. A workspace without a row is refused, so a new one gets its rule first. */
export const MAY_IMPORT = {
  errors: [],
  runtime: [],
  protocol: ['errors'],
  core: ['errors'],
  capture: ['core', 'errors'],
  contract: ['errors'],
  mux: ['protocol', 'errors'],
  client: ['protocol', 'mux', 'core', 'capture', 'errors', 'runtime'],
  edge: ['protocol', 'mux', 'core', 'capture', 'contract', 'errors', 'runtime'],
  platform: ['core', 'contract', 'errors', 'runtime'],
  server: ['edge', 'platform', 'contract', 'runtime', 'errors'],
  cli: ['client', 'contract', 'errors', 'runtime'],
  dashboard: ['contract', 'errors'],
  testkit: ['errors', 'protocol', 'core', 'mux', 'runtime', 'client', 'contract', 'edge', 'platform'],
};

/** Packages that run anywhere: no Node.js modules, no timers, no process. */
export const PURE = new Set(['errors', 'protocol', 'core', 'contract']);

export const IMPURE_NAMES = ['process', 'setTimeout', 'setInterval', 'setImmediate', 'Buffer', '__dirname', 'require'];

/** Time, chance and waiting are arguments of the core. */
export const CORE_REFUSES = [
  { pattern: /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\b/g, name: 'the clock' },
  { pattern: /\bMath\.random\b|\bcrypto\b/g, name: 'chance' },
  { pattern: /\basync\b|\bawait\b|\bPromise\b|\bqueueMicrotask\b/g, name: 'async code' },
];

/** An edge holds no database credentials; a browser has no Node.js. */
export const NEVER_EXTERNAL = {
  edge: [/^pg($|[-/])/, /^kysely/, /postgres/, /sqlite/],
  dashboard: [/^node:/],
};
