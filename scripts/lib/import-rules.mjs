// Who may import whom: packages, and the folders inside one. The tables of ARCHITECTURE.md, as data.

/** Own packages that each one may import. A workspace without a row is refused, so a new one gets its rule first. */
export const MAY_IMPORT = {
  errors: [],
  runtime: [],
  protocol: ['errors'],
  core: ['errors'],
  capture: ['core', 'errors'],
  contract: ['errors'],
  'http-shell': ['core', 'contract', 'errors', 'runtime'],
  mux: ['protocol', 'core', 'errors'],
  dns: ['core', 'errors', 'runtime'],
  'mcp-tools': ['contract', 'errors'],
  'mcp-bridge': ['errors', 'runtime'],
  acme: ['core', 'dns', 'errors', 'runtime'],
  simulator: ['contract', 'errors', 'runtime'],
  peer: ['protocol', 'mux', 'core', 'errors', 'runtime'],
  client: ['protocol', 'mux', 'peer', 'core', 'capture', 'errors', 'runtime'],
  edge: ['protocol', 'mux', 'core', 'capture', 'contract', 'http-shell', 'acme', 'dns', 'errors', 'runtime'],
  platform: ['core', 'contract', 'mcp-tools', 'http-shell', 'acme', 'dns', 'errors', 'runtime'],
  server: ['edge', 'platform', 'simulator', 'core', 'contract', 'dns', 'runtime', 'errors'],
  cli: ['client', 'contract', 'mcp-tools', 'mcp-bridge', 'errors', 'runtime'],
  dashboard: ['contract', 'errors'],
  testkit: ['errors', 'protocol', 'core', 'mux', 'peer', 'runtime', 'client', 'contract', 'edge', 'platform'],
};

/** Files that hold tests or serve them: they may import anything, and no product file may import them. */
export const FOR_TESTS = /\.(?:test|conformance|fixture)\.tsx?$/;

/** Where the product begins, in each src: what cannot be reached from there serves tests, and carries their suffix. */
export const ENTRY = /^(?:index|main|stack-main|complete-main)\.tsx?$/;

/**
 * Folders of a workspace's src and those that each may import, itself included. `ingress` stands for every folder below it; a folder
 * without a row is refused. Files of src itself bring the parts together and may import all; no folder imports them.
 */
export const FOLDER_MAY_IMPORT = {
  edge: {
    admin: ['control', 'ingress', 'policy', 'routing', 'upstream', 'capture', 'backend'],
    alerts: ['control', 'ingress', 'routing', 'upstream', 'capture', 'backend'],
    control: ['ingress', 'policy', 'routing', 'upstream', 'backend'],
    // The table of the kinds of tunnels, above their folders.
    ingress: ['policy', 'routing', 'upstream', 'backend'],
    'ingress/tcp': ['ingress/tls', 'policy', 'routing', 'upstream', 'backend'],
    'ingress/udp': ['policy', 'routing', 'upstream', 'backend'],
    'ingress/p2p': ['routing', 'upstream', 'backend'],
    'ingress/http': ['ingress/tls', 'policy', 'routing', 'upstream', 'backend'],
    'ingress/tls': ['routing', 'upstream', 'backend'],
    // The rules run here for a route, and know nothing of who reads the visitor.
    policy: ['routing', 'upstream', 'backend'],
    routing: ['upstream', 'backend'],
    upstream: ['backend'],
    // It is fed through an interface of upstream's: nothing on the way of a request knows that it is there.
    capture: ['routing', 'upstream', 'backend'],
    backend: [],
  },
};

/** A file of src itself that every folder may import: constants, which import nothing of the workspace. */
export const SHARED_FILE = 'limits.ts';

/** Packages that run anywhere: no Node.js modules, no timers, no process. */
export const PURE = new Set(['errors', 'protocol', 'core', 'contract']);

export const IMPURE_NAMES = new Set([
  ...['process', 'Buffer', '__dirname', 'require', 'globalThis'],
  ...['setTimeout', 'setInterval', 'setImmediate'],
]);

/** Time, chance and waiting are arguments of the core. */
export const CORE_REFUSES = new Map([
  ...['Date.now', 'new Date()', 'performance'].map((name) => [name, 'the clock']),
  ...['Math.random', 'crypto'].map((name) => [name, 'chance']),
  ...['async', 'Promise', 'queueMicrotask'].map((name) => [name, 'async code']),
]);

/** An edge holds no database credentials; a browser has no Node.js. */
export const NEVER_EXTERNAL = {
  edge: [/^pg($|[-/])/, /^kysely/, /postgres/, /sqlite/],
  dashboard: [/^node:/],
};
