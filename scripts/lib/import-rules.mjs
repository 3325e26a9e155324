// Who may import whom: packages, and the folders inside one. The tables of ARCHITECTURE.md, as data.

/** Own packages that each one may import. A workspace without a row is refused, so a new one gets its rule first. */
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

/** Files that hold tests or serve them: they may import anything, and no product file may import them. */
export const FOR_TESTS = /\.(?:test|conformance|fixture)\.tsx?$/;

/** Where the product begins, in each src: what cannot be reached from there serves tests, and carries their suffix. */
export const ENTRY = /^(?:index|main|stack-main|complete-main|executable-main|udx-addon)\.tsx?$/;

/**
 * What the parts of a workspace's src may import of each other, in one table for each workspace.
 *
 * A row is a folder with everything below it (the longest row that fits counts), one file of src itself (`run.ts`), or all other files of
 * src itself (`*.ts`). An entry is a folder with everything below it, the files of a folder without those below it (`services/*.ts`), one
 * file of src itself (`io.ts`), or all of these (`*.ts`).
 *
 * Without an entry a part may import only itself and SHARED_FILE. Files of src itself may import each other, and an ENTRY without a row may
 * import everything. A folder without a row is refused. A workspace that has no table here has only the rule against circles.
 */
export const FOLDER_MAY_IMPORT = {
  edge: {
    // The composition root.
    '*.ts': ['admin', 'alerts', 'control', 'ingress', 'policy', 'routing', 'upstream', 'capture', 'backend'],
    admin: ['control', 'ingress', 'policy', 'routing', 'upstream', 'capture', 'backend'],
    alerts: ['control', 'ingress', 'routing', 'upstream', 'capture', 'backend'],
    control: ['ingress', 'policy', 'routing', 'upstream', 'backend'],
    // The table of the kinds of tunnels, above their folders.
    ingress: [
      ...['ingress/tcp', 'ingress/udp', 'ingress/p2p', 'ingress/http', 'ingress/tls'],
      ...['policy', 'routing', 'upstream', 'backend'],
    ],
    'ingress/tcp': ['ingress/tls', 'policy', 'routing', 'upstream', 'backend'],
    'ingress/udp': ['policy', 'routing', 'upstream', 'backend'],
    // A relay stream of peers is a relayed connection.
    'ingress/p2p': ['ingress/tcp', 'routing', 'upstream', 'backend'],
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
  platform: {
    'platform.ts': ['billing', 'db', 'edge-calls', 'http', 'jobs', 'mail', 'services'],
    'http/server': ['http/routes', 'http/admission', 'http/shared', 'services', 'db'],
    // A room for each room of services, and the list of all routes.
    'http/routes': ['http/admission', 'http/auth', 'http/shared', 'mcp', 'services', 'db', 'timeout.ts'],
    'http/admission': ['http/shared', 'services', 'db'],
    'http/auth': ['http/shared', 'services'],
    'http/shared': ['services/shared', 'db'],
    mcp: ['services'],
    jobs: ['services', 'billing/rules', 'db'],
    'edge-calls': ['services/usage', 'db'],
    // Rooms by entity. An account ends with all that it has, so accounts are above the others.
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
    'services/mail': ['billing/rules', 'db'],
    'services/shared': ['db'],
    billing: ['billing/metering', 'billing/processor', 'db'],
    'billing/metering': ['billing/processor', 'billing/rules', 'db', 'timeout.ts'],
    'billing/processor': ['timeout.ts'],
    // Prices, subscriptions and what an account may do by them: as values.
    'billing/rules': [],
    mail: ['db', 'timeout.ts'],
    db: ['timeout.ts'],
  },
  server: {
    // The program around its commands. The two entries load them.
    'program.ts': ['process'],
    commands: ['run', 'parts', 'stack', 'console', 'embedded-postgres', 'data-dir', 'process', 'bundle.ts'],
    // Of parts and stack it knows the types alone: a parent holds none of the parts' code.
    run: ['parts', 'stack', 'console', 'data-dir', 'process', 'bundle.ts'],
    parts: ['stack', 'console', 'embedded-postgres', 'data-dir', 'process', 'bundle.ts'],
    stack: ['embedded-postgres', 'data-dir'],
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
    // The entries, the list of all commands, and the program around them.
    '*.ts': ['commands', 'io'],
    // A shell waits for it at every Tab.
    'complete-main.ts': ['completion'],
    commands: ['completion', 'mcp', 'service', 'run', 'agent', 'setup', 'output', 'api', 'config', 'io'],
    completion: ['agent', 'io'],
    mcp: ['run', 'agent', 'setup', 'output', 'api', 'config', 'io'],
    'mcp/publish': ['run', 'agent', 'config', 'io'],
    service: ['config', 'io'],
    run: ['run/hooks', 'agent', 'output', 'api', 'config', 'io'],
    'run/hooks': ['agent', 'output', 'config', 'io'],
    // Who asks a running client. Who answers is a hook of the run.
    agent: ['output', 'io'],
    setup: ['api', 'config', 'io'],
    output: ['api', 'io'],
    api: ['config', 'io'],
    config: ['io'],
    io: [],
  },
  client: {
    // What its user holds: the client, its options, what it tells.
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
    // The clock, secrets, metrics: what everything stands on.
    '*.ts': [],
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
    datagram: ['carrier', 'stream', 'loop'],
    stream: ['bytes', 'loop'],
    carrier: ['native', 'bytes', 'loop'],
    socket: ['native', 'bytes', 'loop'],
    native: ['bytes', 'loop'],
    bytes: ['loop'],
    // What Node's event loop calls, and when: everything else stands above it.
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

/** Tables that are a design, and may allow what no file needs today. In the others an entry that no file needs is refused. */
export const DESIGNED = new Set(['edge']);

/** A file of src itself that every folder may import: constants, which import nothing of the workspace. */
export const SHARED_FILE = 'limits.ts';

/** Packages that run anywhere: no Node.js modules, no timers, no process. */
export const PURE = new Set(['errors', 'protocol', 'contract', 'rules', 'http1', 'policy', 'tunnel-spec']);

/** Of these, those that hold nothing but rules. In all other workspaces a file of rules has RULES_FILE's suffix and lies beside its user. */
export const RULES = new Set(['rules', 'http1', 'policy', 'tunnel-spec']);
export const RULES_FILE = /\.rules\.ts$/;

/** Folders of other packages whose files are rules: a file of rules may import them. */
export const RULES_ENTRIES = new Set(['certificates/domains', 'certificates/life']);

/** A folder of a pure package that needs Node.js, with the reason. */
export const NEEDS_NODE = {
  // Kept bodies are Buffers, and unpacked with node:zlib.
  http1: 'capture/',
};

export const IMPURE_NAMES = new Set([
  ...['process', 'Buffer', '__dirname', 'require', 'globalThis'],
  ...['setTimeout', 'setInterval', 'setImmediate'],
]);

/** Time, chance and waiting are arguments of rules. */
export const RULES_REFUSE = new Map([
  ...['Date.now', 'new Date()', 'performance'].map((name) => [name, 'the clock']),
  ...['Math.random', 'crypto'].map((name) => [name, 'chance']),
  ...['async', 'Promise', 'queueMicrotask'].map((name) => [name, 'async code']),
]);

/** An edge holds no database credentials; a browser has no Node.js. */
export const NEVER_EXTERNAL = {
  edge: [/^pg($|[-/])/, /^kysely/, /postgres/, /sqlite/],
  dashboard: [/^node:/],
};
