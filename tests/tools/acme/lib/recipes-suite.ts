// The recipes for dns-01 in docs/recipes with real programs: a certificate from pebble with records that nsupdate sets in BIND, and a
// provider's HTTP API that is called with curl. A test is skipped with the name of the missing program.
import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { DnsLookups, ExecChallenges } from '@tunnel/certificates/dns';
import { loadServerConfig } from '@tunnel/config/server';
import { createLogger, systemClock } from '@tunnel/runtime';
import {
  eventually,
  freePort,
  type Program,
  spawnProgram,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FileCertificateStore, ManagedCertificates } from '../../../../packages/certificates/src/acme/index.ts';
import { startPebble } from './pebble.ts';

const RECIPES = join(import.meta.dirname, '../../../../docs/recipes');
const run = promisify(execFile);

const isThere = (program: string): boolean => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;

let folder: TemporaryDirectory;
let programs: Program[];

beforeEach(async () => {
  folder = await temporaryDirectory();
  programs = [];
});

afterEach(async () => {
  await Promise.all(programs.map((program) => program.close()));
  await folder.close();
});

const written = (name: string, text: string, mode = 0o600): string => {
  const path = join(folder.path, name);
  writeFileSync(path, text, { mode });
  return path;
};

/** Starts a separate name server for example.test, which accepts updates signed with the key. */
const startBind = async (): Promise<{ port: number; keyFile: string }> => {
  const { stdout: key } = await run('tsig-keygen', ['-a', 'hmac-sha256', 'tunnel']);
  const keyFile = written('tsig.key', key);
  const port = await freePort();
  const work = join(folder.path, 'bind');
  mkdirSync(work);
  const zone = join(work, 'example.test.zone');
  writeFileSync(
    zone,
    '$TTL 1\n@ SOA ns.example.test. op.example.test. 1 60 60 60 1\n@ NS ns\nns A 127.0.0.1\n* A 127.0.0.1\n@ A 127.0.0.1\n',
  );
  const config = written(
    'named.conf',
    `${key}
options {
  directory "${work}"; pid-file none; session-keyfile none; managed-keys-directory "${work}";
  listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };
  recursion no; dnssec-validation no;
};
controls { };
zone "example.test" { type primary; file "${zone}"; update-policy { grant tunnel subdomain example.test. TXT; }; };
`,
  );
  chmodSync(folder.path, 0o755);
  programs.push(await spawnProgram({ command: 'named', args: ['-g', '-c', config] }));
  await eventually(async () => {
    const { stdout } = await run('dig', [
      '+short',
      '+time=1',
      '+tries=1',
      '-p',
      `${port}`,
      '@127.0.0.1',
      'ns.example.test',
      'A',
    ]);
    expect(stdout.trim()).toBe('127.0.0.1');
  });
  return { port, keyFile };
};

it('the nsupdate recipe sets records in BIND that get a wildcard certificate issued, and clears them', async (context) => {
  for (const program of ['named', 'nsupdate', 'tsig-keygen', 'dig']) {
    if (!isThere(program)) return context.skip(`${program} is not installed`);
  }
  const { port, keyFile } = await startBind();
  const pebble = await startPebble({ dnsServer: `127.0.0.1:${port}`, noncesRefused: 0, folder: folder.path, programs });
  const hook = written(
    'hook.sh',
    `#!/bin/sh\nDNS_SERVER='127.0.0.1 ${port}' DNS_KEY_FILE=${keyFile} exec ${RECIPES}/dns-01-nsupdate.sh "$@"\n`,
    0o700,
  );
  const dataDir = join(folder.path, 'data');
  mkdirSync(dataDir);
  const config = loadServerConfig({
    env: {},
    overrides: {
      server: { domain: 'example.test' },
      acme: {
        enabled: true,
        directory: pebble.directory,
        ca_file: written('ca.pem', pebble.ca),
        profile: 'default',
        dns: 'exec',
        dns_exec: hook,
      },
      dns: { resolvers: [`127.0.0.1:${port}`] },
    },
  });
  const store = new FileCertificateStore(join(dataDir, 'certificates'), pebble.directory);
  const { id } = await store.want(['*.example.test']);
  const certificates = new ManagedCertificates({
    acme: config.acme,
    dns: config.dns,
    domain: 'example.test',
    host: '127.0.0.1',
    dataDir,
    store,
    challengeTargetOf: async () => null,
    isPassedThrough: () => false,
    clock: systemClock,
    random: Math.random,
    logger: createLogger({ format: 'json', level: 'silent' }),
    listener: { onIssued: () => {}, onOrder: () => {}, onEnding: () => {} },
  });
  await certificates.start();
  try {
    await eventually(
      async () => {
        const record = await store.get(id);
        expect([record?.life.lastError, record?.certificate === null]).toEqual([null, false]);
      },
      { timeoutMs: 60_000 },
    );
    // The challenge record is cleared afterwards.
    await eventually(async () => {
      const { stdout } = await run('dig', [
        '+short',
        '-p',
        `${port}`,
        '@127.0.0.1',
        '_acme-challenge.example.test',
        'TXT',
      ]);
      expect(stdout).toBe('');
    });
  } finally {
    await certificates.stop();
  }
});

it('the HTTP API recipe sets and clears a record with curl, and reports an error without the token', async (context) => {
  if (!isThere('curl')) return context.skip('curl is not installed');
  const calls: string[] = [];
  let status = 200;
  const api = createServer((request, response) => {
    void readText(request).then((body) => {
      calls.push(`${request.method} ${request.url} ${request.headers.authorization} ${body}`);
      response.writeHead(status).end('{"error":"no such zone"}');
    });
  }).listen(0, '127.0.0.1');
  await once(api, 'listening');
  const { port } = api.address() as AddressInfo;
  const tokens = written('api.curl', 'header = "Authorization: Bearer not-for-logs-0123456789"\n');
  const lookups = new DnsLookups({ resolvers: [`127.0.0.1:${port}`], clock: systemClock });
  const challenges = new ExecChallenges({
    program: join(RECIPES, 'dns-01-http-api.sh'),
    env: { ...process.env, DNS_API: `http://127.0.0.1:${port}/v1`, DNS_ZONE: 'example.com', DNS_TOKEN_FILE: tokens },
    lookups,
    clock: systemClock,
  });
  try {
    await challenges.set('_acme-challenge.example.com', 'value-of_it');
    await challenges.clear('_acme-challenge.example.com', 'value-of_it');
    const record = '{"type":"TXT","name":"_acme-challenge.example.com","content":"value-of_it","ttl":60}';
    expect(calls).toEqual(
      ['POST', 'DELETE'].map(
        (method) => `${method} /v1/zones/example.com/records Bearer not-for-logs-0123456789 ${record}`,
      ),
    );
    status = 404;
    const refusal = await challenges.set('_acme-challenge.example.com', 'x').catch((error: Error) => error.message);
    expect(refusal).toContain('no such zone');
    expect(refusal).not.toContain('not-for-logs');
  } finally {
    lookups.close();
    api.close();
  }
});
