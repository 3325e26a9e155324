// docs/deploy.md and docs/proxy.md as a runnable setup: files and commands, adapted to loopback, with the mail server and nginx that the pages expect.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, type PortBlock, type Program, spawnProgram, waitForPort } from '@tunnel/testkit';
import { ROOT } from '../repo/checkout.fixture.ts';
import type { Harness } from './harness.fixture.ts';
import { TLS_CERT, TLS_KEY } from './stack.fixture.ts';

const PAGE = ['docs/deploy.md', 'docs/proxy.md'].map((page) => readFileSync(join(ROOT, page), 'utf8')).join('\n');

export const hasNginx = spawnSync('nginx', ['-v']).status === 0;

/** Returns the code block of a file, named in a comment at the top of the block. */
export const fileOfPage = (path: string): string => {
  const blocks = [...PAGE.matchAll(/^```\w+\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '');
  const found = blocks.find((text) => text.split('\n', 2).includes(`# ${path}`));
  if (found === undefined) throw new Error(`docs/proxy.md has no ${path}`);
  return found;
};

/**
 * Returns the last line of the shell blocks with the given beginning, without sudo and comment. The last lines belong to the setup behind
 * a proxy, which a test can run.
 */
export const commandOfPage = (beginning: string): string[] => {
  const lines = [...PAGE.matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
    .flatMap((match) => (match[1] ?? '').split('\n'))
    .map((line) => line.replace(/ +#.*$/, '').replace(/^sudo (-u tunnel )?/, ''));
  const found = lines.findLast((line) => line.startsWith(beginning));
  if (found === undefined) throw new Error(`the pages have no line that begins with: ${beginning}`);
  return found.split(' ');
};

export const shellBlocksOfPage = (): string[] =>
  [...PAGE.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '');

/** Location of the page's files in a test, and their ports on loopback. */
export class Loopback {
  readonly folder: string;
  readonly #replaced: readonly (readonly [string, string])[];

  /** `dashboard` is the port of nginx, and `platform` the port of the platform behind nginx. */
  constructor(
    folder: string,
    ports: { dashboard: number; platform: number; http: number; https: number; smtp: number },
  ) {
    this.folder = folder;
    const etc = join(folder, 'etc');
    mkdirSync(etc);
    copyFileSync(TLS_CERT, join(etc, 'cert.pem'));
    copyFileSync(TLS_KEY, join(etc, 'key.pem'));
    this.#replaced = [
      ['/etc/tunnel', etc],
      ['/var/lib/tunnel', join(folder, 'data')],
      ['"0.0.0.0"', '"127.0.0.1"'],
      ['https://tunnel.example.com:8443', `https://localhost:${ports.dashboard}`],
      ['tunnel.example.com', 'localhost'],
      ['listen 8443 ssl', `listen 127.0.0.1:${ports.dashboard} ssl`],
      ['127.0.0.1:8080', `127.0.0.1:${ports.platform}`],
      ['port = 8080', `port = ${ports.platform}`],
      ['http_port = 80 ', `http_port = ${ports.http} `],
      ['https_port = 443 ', `https_port = ${ports.https} `],
      ['mail.example.com:587', `127.0.0.1:${ports.smtp}`],
    ];
  }

  /** Replaces paths, hosts and ports of the page by their loopback values. */
  here(text: string): string {
    return this.#replaced.reduce((said, [from, to]) => said.replaceAll(from, to), text);
  }

  /** Writes a file of the page, and returns its path on loopback. */
  write(path: string): string {
    const file = join(this.folder, path.startsWith('/etc/tunnel/') ? 'etc' : '', path.split('/').at(-1) ?? '');
    writeFileSync(file, this.here(fileOfPage(path)));
    return file;
  }
}

export const makeLoopback = async (harness: Harness, ports: PortBlock, smtp = 9): Promise<Loopback> =>
  new Loopback(await harness.folder(), {
    dashboard: await freePort(),
    platform: ports.fixed.platform,
    http: ports.fixed.http,
    https: await freePort(),
    smtp,
  });

/** Writes a complete nginx.conf around the site file of the page, and returns its path. */
export const nginxAround = (loopback: Loopback): string => {
  const folder = join(loopback.folder, 'nginx');
  mkdirSync(folder);
  const site = loopback.write('/etc/nginx/sites-available/tunnel');
  const file = join(folder, 'nginx.conf');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder};`);
  writeFileSync(
    file,
    `pid ${folder}/nginx.pid; error_log ${folder}/error.log; worker_processes 1; daemon off;
events { worker_connections 64; }
http { access_log off; ${temporary.join(' ')} include ${site}; }
`,
  );
  return file;
};

export const startNginx = async (harness: Harness, file: string, port: number): Promise<Program> => {
  const program = harness.use(
    await spawnProgram({
      command: 'nginx',
      args: ['-c', file, '-e', `${file}.log`],
      env: { PATH: process.env['PATH'] ?? '' },
      cwd: '/',
    }),
  );
  await waitForPort(port);
  return program;
};
