// The package.json of each published npm package, as a pure function of the manifests in the repository.

/** Published name without scope, and the workspace that holds the sources. */
export const PACKAGES = [
  { name: 'hatchway', workspace: 'apps/cli' },
  { name: 'hatchway-client', workspace: 'packages/client' },
  { name: 'hatchway-server', workspace: 'apps/server' },
];

export const publishedName = (name, scope) => (scope === undefined ? name : `${scope}/${name}`);

/** The name of the tarball, as npm makes it. */
export const tarballName = (name, version) => `${name.replace(/^@/, '').replace('/', '-')}-${version}.tgz`;

const COMMON_FILES = ['docs', 'THIRD_PARTY_NOTICES.txt'];

/** `manifests`: the package.json of workspaces, by folder. Bundled dependencies are left out; native code stays a dependency. */
export function manifestOf(name, { scope, manifests }) {
  const { version, license, engines } = manifests['.'];
  const udx = { optionalDependencies: manifests['packages/peer'].optionalDependencies };
  const own = {
    hatchway: () => ({
      description: 'The Hatchway client: gives a service on your computer a public URL.',
      bin: manifests['apps/cli'].bin,
      files: ['bin', 'dist', ...COMMON_FILES],
      ...udx,
    }),
    'hatchway-client': () => ({
      description: 'The Hatchway client as a library: opens tunnels from a Node.js program.',
      exports: { '.': { types: './index.d.ts', default: './index.js' } },
      files: ['index.js', 'index.d.ts', ...COMMON_FILES],
      // The declarations name types of Node.js. A program in JavaScript does not need the package.
      peerDependencies: { '@types/node': '>=20' },
      peerDependenciesMeta: { '@types/node': { optional: true } },
      ...udx,
    }),
    'hatchway-server': () => ({
      description: 'The Hatchway server: edge, platform and dashboard.',
      bin: { 'tunnel-server': './server/bin/tunnel-server.mjs' },
      // The bundle finds the dashboard two folders up, as in a checkout.
      files: ['server', 'dashboard', ...COMMON_FILES],
      dependencies: pick(manifests['apps/platform'].dependencies, ['@node-rs/argon2']),
      optionalDependencies: manifests['apps/server'].optionalDependencies,
    }),
  };
  return { name: publishedName(name, scope), version, license, type: 'module', engines, ...own[name]() };
}

const pick = (record, names) => Object.fromEntries(names.map((name) => [name, record[name]]));
