// Import rules between packages, and between the folders of a package: the tables of ARCHITECTURE.md as data.

/** Workspace packages that each workspace may import. A workspace without a row is rejected, so that a new workspace needs a rule first. */
export const MAY_IMPORT = {
  errors: [],
  rules: ['errors'],
  http1: ['errors', 'rules'],
  'tunnel-spec': ['errors', 'rules'],
  policy: ['errors', 'http1', 'rules'],
  protocol: ['errors'],
  contract: ['errors'],
  runtime: ['errors', 'rules'],
  config: ['errors', 'policy', 'rules', 'runtime', 'tunnel-spec'],
  'http-shell': ['contract', 'errors', 'rules', 'config', 'runtime'],
  mux: ['protocol', 'errors', 'rules'],
  mcp: ['contract', 'errors', 'runtime'],
  certificates: ['errors', 'rules', 'config', 'runtime'],
  simulator: ['contract', 'errors', 'rules', 'runtime'],
  peer: ['protocol', 'mux', 'errors', 'runtime'],
  client: ['protocol', 'mux', 'peer', 'policy', 'http1', 'rules', 'tunnel-spec', 'errors', 'config', 'runtime'],
  edge: [
    'protocol',
    'mux',
    'policy',
    'http1',
    'certificates',
    'rules',
    'tunnel-spec',
    'contract',
    'http-shell',
    'errors',
    'config',
    'runtime',
  ],
  platform: ['certificates', 'rules', 'contract', 'mcp', 'http-shell', 'errors', 'config', 'runtime'],
  server: ['edge', 'platform', 'simulator', 'certificates', 'rules', 'contract', 'config', 'runtime', 'errors'],
  cli: ['client', 'contract', 'mcp', 'errors', 'config', 'runtime', 'tunnel-spec'],
  dashboard: ['contract', 'errors', 'rules'],
  testkit: ['errors', 'protocol', 'rules', 'mux', 'peer', 'runtime', 'client', 'contract', 'edge', 'platform'],
};

/** Test files and test support files. They may import anything, and product files must not import them. */
export const FOR_TESTS = /\.(?:test|conformance|fixture)\.tsx?$/;

/**
 * Entry files of the product in each src folder. Files that cannot be reached from an entry file are test support, and must have a suffix
 * of FOR_TESTS.
 */
export const ENTRY = /^(?:index|main|(?:part|stack|launch|help|complete|publish|executable)-main|udx-addon)\.tsx?$/;

/**
 * Allowed imports between the parts of a workspace's src folder, with a table per workspace.
 *
 * A row is a folder with everything below it (the longest matching row applies), a single file directly in src (`run.ts`), or all other
 * files directly in src (`*.ts`). An entry is a folder with everything below it, the files of a folder without its subfolders
 * (`services/*.ts`), a single file directly in src (`io.ts`), or all files directly in src (`*.ts`).
 *
 * A part may always import itself and SHARED_FILE; other imports need an entry. Files directly in src may import each other, and an ENTRY
 * file without a row may import everything. A folder without a row is rejected. For a workspace without a table, only the rule against
 * cycles applies.
 */
export const FOLDER_MAY_IMPORT = {
  edge: {
    // The composition root of the edge.
    '*.ts': ['admin', 'alerts', 'control', 'ingress', 'policy', 'routing', 'upstream', 'capture', 'backend'],
    admin: ['control', 'ingress', 'policy', 'routing', 'upstream', 'capture', 'backend'],
    alerts: ['control', 'ingress', 'routing', 'upstream', 'capture', 'backend'],
    control: ['ingress', 'policy', 'routing', 'upstream', 'backend'],
    // The table of tunnel kinds, above the folders of the kinds.
    ingress: [
      ...['ingress/tcp', 'ingress/udp', 'ingress/p2p', 'ingress/http', 'ingress/tls'],
      ...['policy', 'routing', 'upstream', 'backend'],
    ],
    'ingress/tcp': ['ingress/tls', 'policy', 'routing', 'upstream', 'backend'],
    'ingress/udp': ['policy', 'routing', 'upstream', 'backend'],
    // A relay stream between peers is treated as a relayed tcp connection.
    'ingress/p2p': ['ingress/tcp', 'routing', 'upstream', 'backend'],
    'ingress/http': ['ingress/tls', 'policy', 'routing', 'upstream', 'backend'],
    'ingress/tls': ['routing', 'upstream', 'backend'],
    // Policy rules run here for a route, independent of the code that reads the visitor's request.
    policy: ['routing', 'upstream', 'backend'],
    routing: ['upstream', 'backend'],
    upstream: ['backend'],
    // Captures are fed through an interface of upstream, so the code that handles requests does not depend on captures.
    capture: ['routing', 'upstream', 'backend'],
    backend: [],
  },
  platform: {
    'platform.ts': ['billing', 'db', 'edge-calls', 'http', 'jobs', 'mail', 'services'],
    'http/server': ['http/routes', 'http/admission', 'http/shared', 'services', 'db'],
    // One folder of routes per folder of services, and the list of all routes.
    'http/routes': ['http/admission', 'http/auth', 'http/shared', 'mcp', 'services', 'db', 'timeout.ts'],
    'http/admission': ['http/shared', 'services', 'db'],
    'http/auth': ['http/shared', 'services'],
    'http/shared': ['services/shared', 'db'],
    mcp: ['services'],
    jobs: ['services', 'billing/rules', 'db'],
    'edge-calls': ['services/usage', 'db'],
    // One folder per entity. Deleting an account deletes everything that belongs to the account, so accounts are above the other folders.
    'services/accounts': [
      ...[
        'services/auth',
        'services/billing',
        'services/domains',
        'services/names',
        'services/mail',
        'services/shared',
      ],
      ...['billing/rules', 'db'],
    ],
    'services/oauth': ['services/auth', 'services/shared', 'db'],
    'services/auth': ['services/shared', 'db'],
    'services/keys': ['services/mail', 'services/shared', 'db'],
    'services/billing': ['services/mail', 'services/shared', 'billing', 'db'],
    'services/edges': ['services/tunnels', 'services/plans', 'services/shared', 'billing/rules', 'db'],
    'services/tunnels': [
      'services/names',
      'services/domains',
      'services/plans',
      'services/shared',
      'billing/rules',
      'db',
    ],
    'services/names': ['services/domains', 'services/shared', 'db'],
    'services/domains': ['services/certificates', 'services/mail', 'services/shared', 'db'],
    'services/certificates': ['services/mail', 'services/shared', 'db'],
    'services/usage': ['services/shared', 'billing/rules', 'db'],
    'services/plans': ['services/shared', 'billing/rules', 'db'],
    'services/downloads': [],
    'services/mail': ['billing/rules', 'db'],
    'services/shared': ['db'],
    billing: ['billing/metering', 'billing/processor', 'db'],
    'billing/metering': ['billing/processor', 'billing/rules', 'db', 'timeout.ts'],
    'billing/processor': ['timeout.ts'],
    // Pure rules for prices, subscriptions and the resulting permissions of an account.
    'billing/rules': [],
    mail: ['db', 'timeout.ts'],
    db: ['timeout.ts'],
  },
  server: {
    // The program around the commands, loaded by the two entry files.
    'program.ts': ['process'],
    commands: [
      ...['health', 'service', 'setup', 'run', 'parts', 'stack', 'console', 'backup', 'embedded-postgres', 'data-dir'],
      'process',
      'bundle.ts',
    ],
    setup: ['run', 'data-dir'],
    service: ['data-dir'],
    health: ['data-dir'],
    // Imports only types from `parts` and `stack`, because the parent process must not load code of the parts.
    run: ['parts', 'stack', 'console', 'data-dir', 'process', 'bundle.ts'],
    parts: ['stack', 'backup', 'console', 'embedded-postgres', 'data-dir', 'process', 'bundle.ts'],
    stack: ['backup', 'embedded-postgres', 'data-dir'],
    backup: ['embedded-postgres', 'data-dir'],
    console: ['data-dir'],
    'embedded-postgres': [],
    'data-dir': [],
    process: [],
  },
  dashboard: {
    'router.tsx': ['features', 'api', 'shared'],
    'features/shell': ['features/domains', 'api', 'shared', 'ui'],
    'features/overview': ['features/billing', 'features/tunnels', 'api', 'shared', 'ui'],
    'features/tunnels': ['features/domains', 'features/names', 'api', 'shared', 'ui'],
    'features/consent': ['features/auth', 'api', 'shared', 'ui'],
    'features/auth': ['api', 'shared', 'ui'],
    'features/billing': ['api', 'shared', 'ui'],
    'features/domains': ['api', 'shared', 'ui'],
    'features/keys': ['api', 'shared', 'ui'],
    'features/names': ['api', 'shared', 'ui'],
    'features/pools': ['api', 'shared', 'ui'],
    'features/settings': ['api', 'shared', 'ui'],
    api: ['shared'],
    shared: ['ui'],
    ui: [],
  },
  cli: {
    // The entry files, the list of commands, and the program around the commands.
    '*.ts': ['commands', 'api', 'config/kinds.ts', 'io'],
    // A shell waits for completions at every press of Tab, so few imports are allowed.
    'complete-main.ts': ['completion'],
    commands: ['completion', 'mcp', 'service', 'run', 'agent', 'setup', 'output', 'api', 'config', 'io'],
    completion: ['agent', 'io'],
    mcp: ['run', 'agent', 'setup', 'output', 'api', 'config', 'io'],
    'mcp/publish': ['run', 'agent', 'config', 'io'],
    service: ['config', 'io'],
    run: ['run/hooks', 'agent', 'output', 'api', 'config', 'io'],
    'run/hooks': ['agent', 'output', 'config', 'io'],
    // The side that queries a running client. The responding side is a hook of the run.
    agent: ['output', 'io'],
    setup: ['api', 'config', 'io'],
    output: ['api', 'io'],
    api: ['config', 'io'],
    config: ['io'],
    io: [],
  },
  client: {
    // The public API of the library: client, options and events.
    '*.ts': ['connection', 'inspector', 'local', 'network', 'peers', 'requests', 'state', 'tunnels'],
    doctor: ['connection', 'local', 'network', 'tunnels', 'options.ts'],
    inspector: ['local', 'requests', 'tunnels'],
    requests: ['local', 'tunnels'],
    peers: ['connection', 'local', 'network', 'tunnels'],
    tunnels: ['tunnels/kinds', 'local', 'network', 'policy', 'state'],
    'tunnels/kinds': ['local', 'state'],
    connection: ['connection/proxy', 'network'],
    'connection/proxy': ['network'],
    local: ['local/files', 'network'],
    'local/files': [],
    network: [],
    policy: [],
    state: [],
  },
  runtime: {
    // Clock, secrets and metrics: the base of the remaining folders.
    '*.ts': [],
    traces: ['guarded-fetch', 'logger', '*.ts'],
    'guarded-fetch': ['async', '*.ts'],
    process: ['logger', '*.ts'],
    logger: ['files', '*.ts'],
    files: ['*.ts'],
    async: ['*.ts'],
  },
  config: {
    client: ['layers', 'policy'],
    server: ['layers'],
    policy: ['layers'],
    layers: [],
  },
  rules: {
    admission: ['collections', 'rate', 'tunnels'],
    flows: ['collections', 'net', 'rate'],
    names: ['collections', 'rate'],
    rate: ['collections'],
    'sign-in': ['names'],
    tunnels: ['names'],
    net: [],
    collections: [],
  },
  'tunnel-spec': {
    'options.ts': ['rows'],
    '*.ts': [],
    rows: ['*.ts'],
  },
  http1: {
    capture: ['*.ts'],
  },
  policy: {
    run: ['compile', 'edits', 'login', 'match', 'text', '*.ts'],
    compile: ['edits', 'login', 'match', 'text', '*.ts'],
    edits: ['login', 'match', 'text', '*.ts'],
    login: ['text', '*.ts'],
    schema: ['match', 'text', '*.ts'],
    match: ['text', '*.ts'],
    text: [],
  },
  certificates: {
    acme: ['dns', 'domains', 'life'],
    dns: ['domains'],
    domains: [],
    life: [],
  },
  mcp: {
    tools: [],
    bridge: [],
  },
  peer: {
    session: ['direct', 'sealed'],
    direct: ['sealed', 'transport'],
    sealed: [],
    transport: [],
  },
  mux: {
    session: ['carrier', 'datagram', 'stream', 'bytes', 'loop'],
    datagram: ['carrier', 'stream', 'native', 'loop'],
    stream: ['bytes', 'loop'],
    carrier: ['native', 'bytes', 'loop'],
    socket: ['native', 'bytes', 'loop'],
    native: ['bytes', 'loop'],
    bytes: ['loop'],
    // Calls from Node's event loop, and the order of calls. The folder `loop` is the base of the remaining folders.
    loop: [],
  },
  'http-shell': {
    http: ['gate', 'tls'],
    gate: [],
    tls: [],
  },
  simulator: {
    'simulator.ts': ['api', 'state', 'web'],
    web: ['api', 'state'],
    api: ['state'],
    state: [],
  },
  testkit: {
    acme: ['tls'],
    mux: ['tls'],
    network: ['chance'],
    programs: [],
    time: [],
    chance: [],
    tls: [],
  },
};

/**
 * Workspaces with a table that is a design, so it may allow imports that no file needs yet. In other tables, an unneeded entry is
 * rejected.
 */
export const DESIGNED = new Set(['edge']);

/** A file of constants directly in src. Every folder may import the file; the file imports nothing from its workspace. */
export const SHARED_FILE = 'limits.ts';

/** Packages that run anywhere: without Node.js modules, timers or the process object. */
export const PURE = new Set(['errors', 'protocol', 'contract', 'rules', 'http1', 'policy', 'tunnel-spec']);

/**
 * Pure packages that contain only rules. In all other workspaces, a file of rules has the suffix RULES_FILE and is in the same folder as
 * its user.
 */
export const RULES = new Set(['rules', 'http1', 'policy', 'tunnel-spec']);
export const RULES_FILE = /\.rules\.ts$/;

/** Package entry points outside of RULES with files of rules only. A file of rules may import them. */
export const RULES_ENTRIES = new Set(['certificates/domains', 'certificates/life']);

/** Folders of pure packages with a need for Node.js, and the reason. */
export const NEEDS_NODE = {
  // Stored bodies are Buffers, and are decompressed with node:zlib.
  http1: 'capture/',
};

export const IMPURE_NAMES = new Set([
  ...['process', 'Buffer', '__dirname', 'require', 'globalThis'],
  ...['setTimeout', 'setInterval', 'setImmediate'],
]);

/** Names that rules must not use. Rules receive time, randomness and waiting as arguments. */
export const RULES_REFUSE = new Map([
  ...['Date.now', 'new Date()', 'performance'].map((name) => [name, 'the clock']),
  ...['Math.random', 'crypto'].map((name) => [name, 'chance']),
  ...['async', 'Promise', 'queueMicrotask'].map((name) => [name, 'async code']),
]);

/** External packages forbidden in a workspace: an edge holds no database credentials, and a browser has no Node.js. */
export const NEVER_EXTERNAL = {
  edge: [/^pg($|[-/])/, /^kysely/, /postgres/, /sqlite/],
  dashboard: [/^node:/],
};
