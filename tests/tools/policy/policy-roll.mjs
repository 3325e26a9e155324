// A policy changes under load, again and again: in a group of three, member by member with rising revisions, and by `tunnel reload` on a tunnel that stands
// alone. No request may fail, and none may be served by a policy older than one whose registration was answered before the request began.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { join } from 'node:path';
import { failAtExit, startChild, stopChild, throwAwayFolder } from '../../../bench/lib/children.mjs';
import { ROOT } from '../../../scripts/lib/paths.mjs';
import { cleanEnvironment, startEdge } from '../groups/lib/edge.mjs';
import { runScript } from '../groups/lib/script.mjs';
import { until } from '../groups/lib/until.mjs';

const USAGE = `usage: node tests/tools/policy/policy-roll.mjs [--revisions N] [--connections N]
3 members and one alone, 20 revisions each over 16 connections: about two minutes.`;

const CLI = join(ROOT, 'apps/cli/bin/tunnel.mjs');
const MEMBERS = 3;
const GROUP = 'roll';
/** What proves who let a request in; each revision has one of its own beside a lasting one. */
const LASTING = 'a-token-that-every-revision-knows';
/** Between two changes, so that each of them serves. */
const REQUESTS_BETWEEN = 50;
const REQUEST_TIMEOUT_MS = 20_000;

/** Says its revision to the service and to the visitor, and keeps out whoever has no token. */
const policyText = (revision) => `
rules:
  - { request_headers: { set: { X-Revision: "${revision}" } } }
  - { response_headers: { set: { X-Revision: "${revision}" } } }
  - auth:
      tokens: [{ name: lasting, token: ${LASTING} }, { name: of-now, token: "the-token-of-revision-number-${revision}" }]
`;

/** Says which revision let it in. */
async function startService() {
  const server = createServer((asked, response) => {
    response.setHeader('x-let-in-by', asked.headers['x-revision'] ?? 'none');
    response.end('served');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server.address().port;
}

/** A `tunnel start` whose policy file and revision change, and that reads them when it is told. */
class Publisher {
  #home = throwAwayFolder();
  #edge;
  #entry;
  #child = null;
  ready = null;

  constructor(edge, entry) {
    this.#edge = edge;
    this.#entry = entry;
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

  /** Settles when its registration was answered. */
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
    const { run } = this.#edge;
    const lines = [
      `server: "${run.control}"`,
      `auth_token_file: "${run.admin_token_file}"`,
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

/** Visitors one after the other on connections that stay open, each request with the revision that it must at least meet. */
class Visitors {
  /** The highest revision whose registration was answered. */
  answered = 0;
  served = 0;
  turnedAway = 0;
  wrong = [];
  #isOver = false;
  #loops;

  constructor({ host, port, connections }) {
    const agent = new Agent({ keepAlive: true, maxSockets: connections });
    this.#loops = Promise.all(Array.from({ length: connections }, (_, nth) => this.#loop({ host, port, agent, nth })));
  }

  async stop() {
    this.#isOver = true;
    await this.#loops;
  }

  async #loop({ host, port, agent, nth }) {
    for (let turn = nth; !this.#isOver; turn += 1) {
      // One in eight is a stranger, who must never get in.
      const isStranger = turn % 8 === 0;
      const headers = { host, ...(isStranger ? {} : { 'x-tunnel-token': LASTING }) };
      const atLeast = this.answered;
      try {
        this.#judge(await ask({ port, agent, headers }), { atLeast, isStranger });
      } catch (error) {
        this.wrong.push(`a request failed: ${error.message}`);
      }
    }
  }

  #judge({ status, revision, letInBy }, { atLeast, isStranger }) {
    if (isStranger) this.turnedAway += 1;
    else this.served += 1;
    if (status !== (isStranger ? 401 : 200)) this.wrong.push(`${isStranger ? 'a stranger' : 'a request'}: ${status}`);
    if (!(revision >= atLeast)) this.wrong.push(`revision ${revision} where ${atLeast} was in force`);
    // One request is decided by one policy.
    if (!isStranger && letInBy !== revision) this.wrong.push(`let in by ${letInBy}, answered by ${revision}`);
  }
}

function ask({ port, agent, headers }) {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, agent, headers, timeout: REQUEST_TIMEOUT_MS }, (response) => {
      response.resume();
      const { 'x-revision': revision, 'x-let-in-by': letInBy } = response.headers;
      response.once('error', reject);
      response.once('end', () =>
        resolve({ status: response.statusCode, revision: Number(revision), letInBy: Number(letInBy) }),
      );
    });
    asked.once('timeout', () => asked.destroy(new Error('no answer in time')));
    asked.once('error', reject).end();
  });
}

/** `changes(revision)`: one after the other, each settles when its registration was answered. */
async function roll(name, { revisions, visitors, publishers, check }) {
  for (let revision = 1; revision <= revisions; revision += 1) {
    for (const publisher of publishers) {
      await publisher.change(revision);
      visitors.answered = revision;
      const before = visitors.served;
      await until(
        'the change has served',
        () => visitors.served - before >= REQUESTS_BETWEEN || visitors.wrong.length > 0,
      );
    }
  }
  await visitors.stop();
  const kinds = new Map();
  for (const wrong of visitors.wrong) kinds.set(wrong, (kinds.get(wrong) ?? 0) + 1);
  const words = [...kinds].slice(0, 5).map(([kind, count]) => `${count} × ${kind}`);
  check(
    visitors.wrong.length === 0,
    `${name}: ${revisions} revisions, ${visitors.served} served, ${visitors.turnedAway} strangers turned away${words.length === 0 ? '' : `; ${words.join('; ')}`}`,
  );
  return visitors.served;
}

await runScript(
  {
    name: 'policy-roll',
    usage: USAGE,
    options: { revisions: 20, connections: 16 },
    limitSecs: ({ revisions }) => 120 + revisions * 30,
  },
  async ({ values: { revisions, connections }, say, check }) => {
    const edge = await startEdge();
    const local_port = await startService();
    const member = (revision, home) => ({
      ...{ proto: 'http', local_port, group: GROUP, group_key_file: join(home, 'group-key'), subdomain: GROUP },
      policy_revision: revision,
    });
    const alone = () => ({ proto: 'http', local_port, subdomain: 'alone' });
    const members = [];
    for (let nth = 0; nth < MEMBERS; nth += 1) members.push(await new Publisher(edge, member).start(0));
    const solo = await new Publisher(edge, alone).start(0);
    say(`${MEMBERS} members of one group, and a tunnel alone; ${connections} connections`);
    const load = ({ host }) => new Visitors({ host, port: edge.httpPort, connections });
    let served = await roll('in a group', { revisions, visitors: load(members[0]), publishers: members, check });
    served += await roll('alone', { revisions, visitors: load(solo), publishers: [solo], check });
    await Promise.all([...members, solo].map((publisher) => publisher.close()));
    await edge.close();
    return `${served} requests while ${revisions} revisions came, in a group and alone: none failed, none met an older policy`;
  },
);
