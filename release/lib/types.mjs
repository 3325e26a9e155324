// The declarations of the client library in a single file that names no private package, and the check of that file.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { node } from './programs.mjs';

const PRIVATE = /^@tunnel\//;

/** Packages that are replaced by a few types of release/types. */
const REPLACED = { zod: 'release/types/zod.d.ts', 'zod/v4/core': 'release/types/zod-core.d.ts' };

/** Emits the declarations of the workspaces, and merges the exports of the library into a single text. */
export async function rollUpTypes() {
  await node([join(ROOT, 'node_modules/typescript/bin/tsc'), '-b', 'packages/client']);
  const [{ rollup }, { dts }] = await Promise.all([import('rollup'), import('rollup-plugin-dts')]);
  const bundle = await rollup({
    input: join(ROOT, 'packages/client/.cache/types/index.d.ts'),
    external: /^node:/,
    plugins: [workspaceDeclarations, dts()],
    // Types of zod that are missing in release/types matter only if the library exports them. Then the compiler reports them.
    onwarn: () => {},
  });
  const { output } = await bundle.generate({ format: 'es' });
  const [{ code, imports }] = output;
  const others = imports.filter((name) => !name.startsWith('node:'));
  if (others.length > 0 || code.includes('@tunnel/'))
    throw new Error(`declarations: ${others} or a private package is named`);
  return code;
}

/** The emitted declarations import `./x.ts` and `@tunnel/x`: both stand for declaration files. */
const workspaceDeclarations = {
  name: 'workspace-declarations',
  resolveId: (id, importer) => {
    if (PRIVATE.test(id)) return declarationOf(id);
    if (REPLACED[id]) return join(ROOT, REPLACED[id]);
    if (!importer || !id.startsWith('.')) return null;
    return resolve(dirname(importer), id).replace(/(?<!\.d)\.ts$/, '.d.ts');
  },
};

function declarationOf(id) {
  const [, name, ...rest] = id.split('/');
  const folder = join(ROOT, 'packages', name);
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return join(folder, exports[['.', ...rest].join('/')].types);
}

/** A strict program that imports the package. */
const PROGRAM = (name) => `import { connect, type Client, type ConnectOptions, type Tunnel } from '${name}';
const options: ConnectOptions = { server: 'localhost:4040', token: 'tnl_0' };
const client: Client = await connect(options);
const tunnel: Tunnel = await client.open({ protocol: 'http', localPort: 3000, healthCheck: { path: '/up' } });
// @ts-expect-error A port is a number.
await client.open({ protocol: 'tcp', localPort: 'http' });
const url: string = tunnel.publicUrl;
export { url };
`;

/** Compiles a program against an unpacked package, once for each way to resolve modules. Only the types of Node.js are at hand. */
export async function compileAgainst(unpacked, name) {
  // Not inside the checkout, where every package is found.
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-types-'));
  try {
    cpSync(unpacked, join(folder, 'node_modules', name), { recursive: true });
    mkdirSync(join(folder, 'node_modules/@types'));
    symlinkSync(join(ROOT, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(folder, 'program.ts'), PROGRAM(name));
    await compile(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compile(folder) {
  for (const [module, moduleResolution] of [
    ['NodeNext', 'NodeNext'],
    ['ESNext', 'Bundler'],
  ]) {
    const compilerOptions = {
      ...{ module, moduleResolution, target: 'ES2023', lib: ['ES2023'], types: ['node'] },
      ...{ strict: true, skipLibCheck: false, exactOptionalPropertyTypes: true, noEmit: true },
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['program.ts'] }));
    await node([join(ROOT, 'release/node_modules/typescript/bin/tsc'), '-p', folder]);
  }
}
