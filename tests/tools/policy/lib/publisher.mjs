// A `tunnel start` whose policy file and revision change, and that reads them when it is told; and the service behind it, which says by which
// revision a request was let in.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { failAtExit, startChild, stopChild, throwAwayFolder } from '../../../../bench/lib/children.mjs';
import { ROOT } from '../../../../scripts/lib/paths.mjs';
import { cleanEnvironment } from '../../groups/lib/edge.mjs';
import { until } from '../../groups/lib/until.mjs';

const CLI = join(ROOT, 'apps/cli/bin/tunnel.mjs');
/** What proves who let a request in; each revision has one of its own beside a lasting one. */
export const LASTING = 'a-token-that-every-revision-knows';

/** Says its revision to the service and to the visitor, and keeps out whoever has no token. */
const policyText = (revision) => `
rules:
  - { request_headers: { set: { X-Revision: "${revision}" } } }
  - { response_headers: { set: { X-Revision: "${revision}" } } }
  - auth:
      tokens: [{ name: lasting, token: ${LASTING} }, { name: of-now, token: "the-token-of-revision-number-${revision}" }]
`;

/** `naked`: how many requests came that no policy had let in. */
export async function startService() {
  const service = { port: 0, naked: 0 };
  const server = createServer((asked, response) => {
    const { 'x-revision': revision, 'x-tunnel-user': user } = asked.headers;
    if (revision === undefined || user !== 'lasting') service.naked += 1;
    response.setHeader('x-let-in-by', revision ?? 'none');
    response.end('served');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  service.port = server.address().port;
  return service;
}

export class Publisher {
  ready = null;
  #home = throwAwayFolder();
  #edge;
  #entry;
  #server;
  #child = null;

  /** `entry(revision, home)`: its tunnel in config.yml; `server`: where its edge is, unless it says so itself. */
  constructor(edge, entry, server = edge.run.control) {
    this.#edge = edge;
    this.#entry = entry;
    this.#server = server;
    mkdirSync(join(this.#home, '.tunnel'), { mode: 0o700 });
    writeFileSync(join(this.#home, 'group-key'), 'a key that all members share', { mode: 0o600 });
  }

  async start(revision) {
    this.#write(revision);
    this.#child = startChild({
      name: 'tunnel',
      command: process.execPath,
      args: [CLI, 'start', '--json', '--quiet', '--no-inspect', '--config', this.#config],
      env: cleanEnvironment(this.#home),
      cwd: this.#home,
      onLine: (line) => this.#heard(line),
    });
    await Promise.race([until('the tunnel is open', () => this.ready, { timeoutMs: 30_000 }), failAtExit(this.#child)]);
    return this;
  }

  /** Settles when its registration was answered, or when its client has taken it for the time after a loss. */
  async change(revision) {
    this.#write(revision);
    const child = spawn(process.execPath, [CLI, 'reload', '--json', '--client', String(this.#child.pid)], {
      env: cleanEnvironment(this.#home),
      cwd: this.#home,
    });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (said += piece));
    const [code] = await Promise.race([once(child, 'exit'), failAtExit(this.#child)]);
    if (code !== 0) throw new Error(`reload to revision ${revision}: exit ${code}: ${said.trim().slice(-500)}`);
  }

  get host() {
    return new URL(this.ready.public_url).host;
  }

  get isAlive() {
    return this.#child.exit === null;
  }

  close() {
    return stopChild(this.#child, 'SIGTERM');
  }

  get #config() {
    return join(this.#home, '.tunnel', 'config.yml');
  }

  /** Each file in one step: a reload never sees half of one. */
  #write(revision) {
    const policy = join(this.#home, '.tunnel', 'policy.yml');
    writeFileSync(`${policy}.new`, policyText(revision), { mode: 0o600 });
    renameSync(`${policy}.new`, policy);
    const lines = [
      `server: "${this.#server}"`,
      `auth_token_file: "${this.#edge.run.admin_token_file}"`,
      'tunnels:',
      '  rolled:',
      ...Object.entries({ ...this.#entry(revision, this.#home), policy: 'policy.yml' }).map(
        ([name, value]) => `    ${name}: ${JSON.stringify(value)}`,
      ),
    ];
    writeFileSync(`${this.#config}.new`, `${lines.join('\n')}\n`, { mode: 0o600 });
    renameSync(`${this.#config}.new`, this.#config);
  }

  #heard(line) {
    if (!line.startsWith('{')) return;
    const event = JSON.parse(line);
    if (event.event === 'ready') this.ready = event;
  }
}
