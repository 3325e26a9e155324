// The builds that try:skew runs beside each other: the previous release, this checkout, and newer versions with made-up migrations.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { build } from 'esbuild';
import { BUNDLES } from '../../../../scripts/lib/build-state.mjs';
import { bundleOptions } from '../../../../scripts/lib/bundle-options.mjs';
import { CACHE_DIR, ROOT } from '../../../../scripts/lib/paths.mjs';

const FOLDER = join(CACHE_DIR, 'skew');
const SERVER = 'apps/server/bin/tunnel-server.mjs';
const CLIENT = 'apps/cli/bin/tunnel.mjs';

const readJson = (file) => JSON.parse(readFileSync(join(ROOT, file), 'utf8'));

const git = (...args) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' });

/** Returns why the previous release cannot be built here, or null. */
export function missingForPrevious() {
  if (git('--version').status !== 0) return 'git is not installed';
  if (git('rev-parse', '--git-dir').status !== 0)
    return 'this folder is not a git checkout, which has the previous release';
  const { commit, version } = readJson('release/previous.json');
  if (git('cat-file', '-e', `${commit}^{commit}`).status !== 0)
    return `commit ${commit} of version ${version} is not in this checkout: git fetch --unshallow`;
  return null;
}

const ended = (child) => new Promise((resolve) => child.on('error', () => resolve(1)).on('close', resolve));

/** Unpacks, installs and builds the previous release in .cache. A finished build is kept for the next run. */
export async function makePrevious(say) {
  const { version, commit } = readJson('release/previous.json');
  const folder = join(FOLDER, `${version}-${commit.slice(0, 12)}`);
  const marker = join(folder, '.cache/skew-is-built');
  if (!existsSync(marker)) {
    say(`version ${version} (${commit.slice(0, 8)}): npm ci and build, which take minutes`);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const archive = join(folder, 'archive.tar');
    const unpacked =
      git('archive', '--output', archive, commit).status === 0 &&
      spawnSync('tar', ['-xf', archive, '-C', folder]).status === 0;
    if (!unpacked) throw new Error(`commit ${commit} could not be unpacked`);
    rmSync(archive);
    const clean = Object.entries(process.env).filter(([name]) => !/^npm_(?!config_)|^INIT_CWD$/i.test(name));
    const make = spawn(process.execPath, ['scripts/ensure.mjs', 'build'], {
      cwd: folder,
      env: Object.fromEntries(clean),
      stdio: ['ignore', 2, 2],
    });
    if ((await ended(make)) !== 0) throw new Error(`version ${version} could not be built in ${folder}`);
    mkdirSync(dirname(marker), { recursive: true });
    writeFileSync(marker, '');
  }
  return { version, server: join(folder, SERVER), client: join(folder, CLIENT) };
}

export const current = () => ({
  version: readJson('package.json').version,
  server: join(ROOT, SERVER),
  client: join(ROOT, CLIENT),
});

/**
 * Statements as a newer version would add them: a new column, and a table that older versions do not know. The second migration takes
 * time, so that a kill can hit it.
 */
const MADE_UP = [
  'alter table users add column made_up text',
  'create table made_up (id int primary key, at timestamptz not null default now()); select pg_sleep(3)',
];

/** Builds this server as a newer version with two made-up migrations, which allow `oldestVersion` and newer versions. */
export async function makeNewer({ name, version, oldestVersion }) {
  const folder = join(FOLDER, name);
  rmSync(folder, { recursive: true, force: true });
  const migrations = MADE_UP.map((statement, index) => {
    const up = `async (db) => { await sql.raw(${JSON.stringify(statement)}).execute(db); }`;
    return `  '9${index + 1}00-made-up': { oldestVersion: '${oldestVersion}', up: ${up} },\n`;
  });
  const withMigrations = {
    name: 'made-up-migrations',
    setup: ({ onLoad }) =>
      onLoad({ filter: /[\\/]all-migrations\.ts$/ }, ({ path }) => ({
        contents: `import { sql } from 'kysely';\n${readFileSync(path, 'utf8').replace(/^};$/m, `${migrations.join('')}};`)}`,
        loader: 'ts',
        resolveDir: dirname(path),
      })),
  };
  for (const { entry, outfile, isSplit } of BUNDLES.filter((one) => one.outfile.startsWith('apps/server/'))) {
    const options = bundleOptions({ entry, outfile, isSplit });
    await build({
      ...options,
      outdir: join(folder, dirname(outfile)),
      write: true,
      define: { ...options.define, __TUNNEL_VERSION__: JSON.stringify(version) },
      plugins: [withMigrations],
    });
  }
  const server = join(folder, SERVER);
  mkdirSync(dirname(server), { recursive: true });
  cpSync(join(ROOT, SERVER), join(dirname(server), basename(SERVER)));
  return { version, server, client: join(ROOT, CLIENT) };
}
