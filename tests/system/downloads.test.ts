// The server hands out its client: `tunnel-server downloads fetch`, then `curl … | sh` in an environment that has nothing but curl, a shell and
// the usual small programs.
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { releaseFiles, standIn, writeRelease } from '../../apps/platform/src/services/downloads/release.fixture.ts';
import { Harness, it } from './in-process.fixture.ts';
import { runServerCommand } from './server-command.fixture.ts';
import type { Stack } from './stack.fixture.ts';

/** The version of a server that runs from its sources. */
const VERSION = '0.0.0-dev';
const PROGRAMS = ['curl', 'uname', 'mkdir', 'mv', 'chmod', 'rm', 'sha256sum'] as const;

const pathOf = (program: string): string | undefined =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find((file) => existsSync(file));

const shared = new Harness();
let stack: Stack;
let release: string;
let downloads: string;
let config: string;
beforeAll(async () => {
  const folder = await shared.folder();
  [release, downloads, config] = [join(folder, 'release'), join(folder, 'downloads'), join(folder, 'server.toml')];
  writeRelease(release, { version: VERSION });
  writeFileSync(config, `[platform]\ndownloads_dir = "${downloads}"\n`);
  stack = await shared.stack({
    command: 'stack',
    fixedPorts: true,
    env: { TUNNEL_PLATFORM__DOWNLOADS_DIR: downloads },
  });
});
afterAll(() => shared.close());

interface Computer {
  readonly shell?: string;
  readonly programs?: readonly string[];
  /** Programs of the test, as shell scripts. */
  readonly scripts?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A home folder, and a PATH with these programs only. */
const makeComputer = async (
  harness: Harness,
  { shell = 'sh', programs = PROGRAMS, scripts = {}, env = {} }: Computer,
) => {
  const home = await harness.folder();
  const bin = join(home, 'programs');
  mkdirSync(bin);
  for (const program of programs) {
    const real = pathOf(program);
    if (real !== undefined) symlinkSync(real, join(bin, program));
  }
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  symlinkSync(pathOf(shell) ?? '/bin/sh', join(bin, 'sh'));
  const run = (command: string): Promise<Ran> =>
    new Promise((resolve) => {
      execFile(
        join(bin, 'sh'),
        ['-c', command],
        { env: { HOME: home, PATH: bin, ...env } },
        (error, stdout, stderr) => {
          const code = error === null ? 0 : Number(error.code ?? 1);
          resolve({ code, stdout, stderr });
        },
      );
    });
  const install = () => run(`curl -fsSL ${stack.run.platform_url}/install | sh`);
  return { home, bin, run, install };
};

const fetchRelease = async (): Promise<void> => {
  writeRelease(release, { version: VERSION });
  const { code, stderr } = await runServerCommand(['downloads', 'fetch', '--from', release, '--config', config]);
  expect(code, stderr.join('\n')).toBe(0);
};

const SHELLS = ['sh', 'dash', 'bash', 'busybox'].filter((name) => pathOf(name) !== undefined);

/** The release of the test has stand-ins for Linux only. */
const canInstall = process.platform === 'linux' && pathOf('curl') !== undefined;

describe.runIf(canInstall)('install', () => {
  it('without files says so, and exits with 1', async ({ harness }) => {
    const { install, home } = await makeComputer(harness, {});
    const { code, stdout, stderr } = await install();
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^install: The operator of this server has put no files here\. .*downloads fetch.*\n$/);
    expect(readdirSync(home)).toEqual(['programs']);
  });

  it.for(SHELLS)('by %s puts a client in place that runs', async (shell, { harness }) => {
    await fetchRelease();
    const { install, run, home } = await makeComputer(harness, { shell });
    const piped = await install();
    expect(piped).toMatchObject({ code: 0, stderr: '' });
    expect(piped.stdout).toContain(`installed tunnel ${VERSION} in ${home}/.local/bin\n`);
    expect(piped.stdout).toContain(`export PATH="${home}/.local/bin:$PATH"\n`);
    expect(piped.stdout).toMatch(/to sign in: tunnel login --platform http:\/\/localhost:\d+\n$/);
    expect((await run('"$HOME/.local/bin/tunnel" --version')).stdout).toBe(`${VERSION}\n`);
    expect(readdirSync(join(home, '.local/bin'))).toEqual(['tunnel']);
  });

  it('replaces a client, in the folder of TUNNEL_INSTALL_DIR', async ({ harness }) => {
    await fetchRelease();
    const { bin, home, run } = await makeComputer(harness, {});
    writeFileSync(join(bin, 'tunnel'), 'old');
    const fetched = `curl -fsSL ${stack.run.platform_url}/install`;
    const { stdout } = await run(`${fetched} | TUNNEL_INSTALL_DIR=${bin}/ sh`);
    expect(stdout).not.toContain('PATH');
    expect((await run('tunnel --version')).stdout).toBe(`${VERSION}\n`);
    const second = await run(`${fetched} | PATH=$PATH:${home}/b TUNNEL_INSTALL_DIR=${home}/b sh`);
    expect(second.stdout).toContain(`another tunnel comes first in PATH: ${bin}/tunnel\n`);
  });

  it('refuses a file with a flipped byte, and leaves the installed client alone', async ({ harness }) => {
    await fetchRelease();
    const { install, home, run } = await makeComputer(harness, {});
    expect((await install()).code).toBe(0);
    const flipped = standIn(VERSION).replace('echo', 'ecHo');
    for (const name of ['x64', 'arm64']) writeFileSync(join(downloads, `executables/tunnel-linux-${name}`), flipped);
    const { code, stderr } = await install();
    expect(code).toBe(1);
    expect(stderr).toMatch(/^install: the checksum of tunnel-linux-\S+ is wrong .*; nothing was installed\n$/);
    expect(readdirSync(join(home, '.local/bin'))).toEqual(['tunnel']);
    expect((await run('"$HOME/.local/bin/tunnel" --version')).stdout).toBe(`${VERSION}\n`);
    const listed = await runServerCommand(['downloads', 'list', '--json', '--config', config]);
    expect(JSON.parse(listed.stdout.join(''))).toMatchObject({
      version: VERSION,
      files: expect.arrayContaining([expect.objectContaining({ name: 'tunnel-linux-x64', state: 'changed' })]),
    });
  });

  it('refuses a file that does not run on this computer', async ({ harness }) => {
    const broken = Object.fromEntries(
      ['x64', 'arm64'].map((name) => [`executables/tunnel-linux-${name}`, '#!/nowhere\n']),
    );
    writeRelease(release, { version: VERSION, files: { ...releaseFiles(VERSION), ...broken } });
    await runServerCommand(['downloads', 'fetch', '--from', release, '--config', config]);
    const { install, home } = await makeComputer(harness, {});
    const { code, stderr } = await install();
    expect([code, stderr]).toEqual([1, expect.stringContaining('does not run on this computer')]);
    expect(readdirSync(join(home, '.local/bin'))).toEqual([]);
  });

  it('uses wget, shasum or openssl where curl and sha256sum are missing', async ({ harness }) => {
    await fetchRelease();
    const [curl = '', sum = ''] = ['curl', 'sha256sum'].map(pathOf);
    const wget = `[ "$1 $2" = '-q -O' ] && ${curl} -fsS -o "$3" "$4"`;
    const openssl = `[ "$*" = 'dgst -sha256 -r' ] && ${sum}`;
    const without = PROGRAMS.filter((name) => name !== 'curl' && name !== 'sha256sum');
    for (const scripts of [
      { wget, shasum: `[ "$*" = '-a 256' ] && ${sum}` },
      { wget, openssl },
    ]) {
      const { run, home } = await makeComputer(harness, { programs: without, scripts });
      const ran = await run(`wget -q -O ${home}/script ${stack.run.platform_url}/install; sh ${home}/script`);
      expect(ran).toMatchObject({ code: 0, stderr: '' });
    }
  });

  it.for([
    ['an unknown system', { scripts: { uname: 'echo Plan9' } }, 'there is no executable for Plan9'],
    [
      'an unknown processor',
      { scripts: { uname: '[ "$1" = -s ] && echo Linux || echo riscv64' } },
      'there is no executable for Linux on riscv64',
    ],
    [
      'a system without a file',
      { scripts: { uname: '[ "$1" = -s ] && echo Darwin || echo arm64' } },
      'has no tunnel-darwin-arm64',
    ],
    ['Windows', { scripts: { uname: 'echo MINGW64_NT-10.0' } }, 'in PowerShell: irm '],
    [
      'a computer without sha256sum',
      { programs: PROGRAMS.filter((one) => one !== 'sha256sum') },
      'sha256sum, shasum or openssl',
    ],
    ['a folder that cannot be made', { env: { TUNNEL_INSTALL_DIR: '/dev/null/bin' } }, 'cannot create the folder'],
    ['a computer without a home folder', { env: { HOME: '' } }, 'HOME is not set'],
  ] as [string, Computer, string][])('on %s ends with one line and 1', async ([, computer, text], { harness }) => {
    await fetchRelease();
    const programs = (computer.programs ?? PROGRAMS).filter((name) => computer.scripts?.[name] === undefined);
    const { install, home } = await makeComputer(harness, { ...computer, programs });
    const { code, stderr } = await install();
    expect([code, stderr.trim().split('\n').at(-1)]).toEqual([1, expect.stringContaining(text)]);
    expect(existsSync(join(home, '.local/bin/tunnel'))).toBe(false);
  });
});

describe('tunnel-server downloads', () => {
  it('fetch prints a line for each file, and where to install from', async () => {
    writeRelease(release, { version: '9.9.9' });
    const { code, stdout, stderr } = await runServerCommand([
      ...['downloads', 'fetch', '--from', release, '--config', config],
    ]);
    expect(code).toBe(0);
    expect(stdout).toEqual([
      expect.stringMatching(/^ok: 6 files of version 9\.9\.9 in .*: http:\/\/localhost:8080\/install$/),
    ]);
    expect(stderr.filter((line) => /: \d of 6, checked$/.test(line)).length).toBeGreaterThan(0);
    expect(stderr.at(-1)).toMatch(/^warning: the files have version 9\.9\.9, and this tunnel-server has version/);
    const { stdout: table } = await runServerCommand(['downloads', 'list', '--config', config]);
    expect(table[0]).toMatch(/^FILE +VERSION +MB +STATE +SHA256$/);
    expect(table).toContainEqual(expect.stringMatching(/^tunnel-linux-x64 +9\.9\.9 +0\.0 +ok +[0-9a-f]{64}$/));
    expect(readFileSync(join(downloads, 'manifest.json'))).toEqual(readFileSync(join(release, 'manifest.json')));
  });

  it('needs a folder: one line, exit 2', async () => {
    const { code, stderr } = await runServerCommand(['downloads', 'list', '--config', '/dev/null']);
    expect([code, stderr]).toEqual([2, [expect.stringContaining('`platform.downloads_dir` is required')]]);
  });
});
