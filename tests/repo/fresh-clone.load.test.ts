// A first encounter with the repository: a clone of the last commit on a machine with only Node.js and npm.
import { existsSync, readdirSync, readFileSync, readlinkSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withCallersCertificates } from '../caller-certificates.fixture.ts';
import { cleanEnv, node, ROOT, run } from './checkout.fixture.ts';

const BINS = { tunnel: 'apps/cli/bin/tunnel.mjs', 'tunnel-server': 'apps/server/bin/tunnel-server.mjs' };
const BUNDLES = [
  'apps/cli/dist/tunnel.cjs',
  'apps/server/dist/tunnel-server.js',
  'apps/server/dist/tunnel-stack.js',
  'apps/server/dist/api-reference/swagger-ui-bundle.js',
  'apps/server/dist/guide/index.html',
  'packages/client/dist/index.js',
];

describe.runIf(existsSync(join(ROOT, '.git')))('a fresh clone', () => {
  let dir: TemporaryDirectory;
  let clone: string;
  const ensure = (goal: string) => node(['scripts/ensure.mjs', goal], clone);

  beforeAll(async () => {
    dir = await temporaryDirectory();
    clone = join(dir.path, 'clone');
    expect(await run('git', ['clone', '--quiet', ROOT, clone])).toMatchObject({ code: 0 });
    const env = withCallersCertificates(cleanEnv());
    const installed = await run('npm', ['ci', '--ignore-scripts', '--prefer-offline'], clone, env);
    expect(installed, installed.stderr).toMatchObject({ code: 0 });
  }, 240_000);
  afterAll(() => dir.close());

  it.each(Object.entries(BINS))('links %s to a committed executable file with npm ci', (name, target) => {
    const link = join(clone, 'node_modules/.bin', name);
    expect(readlinkSync(link)).toContain(target.split('/').at(-1));
    expect(statSync(link).ino).toBe(statSync(join(clone, target)).ino);
    expect(statSync(link).mode & 0o777).toBe(0o755);
  });

  it('names the build command if an executable has not been built', async () => {
    const ended = await run(join(clone, 'node_modules/.bin/tunnel'), ['--version'], clone);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain('npm run build');
  });

  it('is built once by two simultaneous first runs, and not rebuilt by the next run', async () => {
    const both = await Promise.all([ensure('build'), ensure('build')]);
    expect(
      both.map(({ code }) => code),
      both[0].stderr + both[1].stderr,
    ).toEqual([0, 0]);
    expect(both.filter(({ stderr }) => stderr.includes('Building'))).toHaveLength(1);
    expect(await ensure('build')).toEqual({ code: 0, stdout: '', stderr: '' });
    for (const file of BUNDLES) expect(existsSync(join(clone, file)), file).toBe(true);
    expect(readdirSync(join(clone, '.cache'))).not.toContain('ensure.lock');
  });

  // Checks only the freshness, because the first run already shows that a stale build is rebuilt, and a second build takes long.
  it('needs a build after a source changed or a bundle was removed', async () => {
    const isFresh = async (): Promise<string> => {
      const program = "import('./scripts/lib/build-state.mjs').then(({ isBuildFresh }) => console.log(isBuildFresh()))";
      return (await node(['-e', program], clone)).stdout.trim();
    };
    const source = join(clone, 'apps/server/src/bundle.ts');
    const text = readFileSync(source, 'utf8');
    writeFileSync(source, `${text}\n// changed\n`);
    expect(await isFresh()).toBe('false');
    writeFileSync(source, text);
    const [bundle = ''] = BUNDLES.map((file) => join(clone, file));
    renameSync(bundle, `${bundle}.away`);
    expect(await isFresh()).toBe('false');
    renameSync(`${bundle}.away`, bundle);
    expect(await isFresh()).toBe('true');
  });

  it('has executables that print the version after the build', async () => {
    const { version } = JSON.parse(readFileSync(join(clone, 'package.json'), 'utf8')) as { version: string };
    for (const name of Object.keys(BINS)) {
      const ended = await run(join(clone, 'node_modules/.bin', name), ['--version'], clone);
      expect(ended, name).toMatchObject({ code: 0, stdout: `${version}\n` });
    }
  });

  it('has a client library that can be imported after the build', async () => {
    const program = "import('@tunnel/client').then(({ connect }) => console.log(typeof connect))";
    expect(await node(['--input-type=module', '-e', program], join(clone, 'apps/cli'))).toMatchObject({
      code: 0,
      stdout: 'function\n',
    });
  });
});
