// Tests of a remote edge: certificates arrive over its platform link, are stored encrypted, and serve visitors while the platform is
// down.
import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OwnDomainView } from '@tunnel/contract';
import { claimPortBlock, eventually, freePort } from '@tunnel/testkit';
import { expect } from 'vitest';
import { Computer } from '../computer.fixture.ts';
import { ask } from '../embedded-database.fixture.ts';
import { startWeb } from '../http-tunnels.fixture.ts';
import { it } from '../in-process.fixture.ts';
import { startEdgeOf } from '../platform-test.fixture.ts';
import { serverCommand } from '../server-command.fixture.ts';
import { Stack } from '../stack.fixture.ts';
import { DOMAIN, Outside, serve } from './outside.fixture.ts';

const SHOP = 'shop.example.com';
const SOON = { timeoutMs: 30_000 };
const KEY = 'PRIVATE KEY';

/** Returns the names of the files below the folder that contain the text, or an empty string. */
const filesWith = (folder: string, text: string): string => {
  try {
    return execFileSync('grep', ['-r', '-l', '-a', text, folder], { encoding: 'utf8' });
  } catch (error) {
    // grep exits with 1 if no file contains the text.
    if ((error as { status: number }).status === 1) return '';
    throw error;
  }
};

const credentialFileOf = ({ flags }: Stack): string => {
  const text = readFileSync(flags[1] ?? '', 'utf8');
  return /^platform_credential_file = "(.*)"$/m.exec(text)?.[1] ?? '';
};

/** Returns every row of every database table as text. */
const dumpOf = async (stack: Stack): Promise<string> => {
  const url = stack.databaseUrl;
  if (url === null) throw new Error('the database runs');
  const tables = String(
    await ask(url, "select string_agg(quote_ident(tablename), ' ') from pg_tables where schemaname = 'public'"),
  ).split(' ');
  const texts: string[] = [];
  for (const table of tables) texts.push(String(await ask(url, `select string_agg(t::text, ' ') from ${table} t`)));
  return texts.join('\n');
};

it('a remote edge serves own domains from encrypted certificate copies while the platform is down; no disk, log or database holds a plain key', async ({
  harness,
}) => {
  const outside = await Outside.open(harness);
  const platform = await outside.stack(harness, { command: 'platform' });
  const edge = await startEdgeOf(harness, platform, 'west', {
    fixedPorts: true,
    env: { ...outside.env, TUNNEL_SERVER__DOMAIN: DOMAIN, TUNNEL_ACME__ENABLED: 'true' },
  });
  // Before the edge was connected, no server answered the challenge of the authority, and the next attempt would come after a minute. The
  // command starts the attempt at once.
  await eventually(async () => {
    await serverCommand(platform, 'certificates', 'renew', DOMAIN);
    expect(await outside.serialOf(DOMAIN)).toMatch(/^[0-9a-f]+$/);
  }, SOON);
  const ann = await Computer.of(harness, platform, 'ann');
  const web = harness.use(await startWeb((_, response) => void response.end('hello')));
  const added = await ann.json<OwnDomainView>(['domains', 'add', SHOP]);
  outside.dns.set(SHOP, 'CNAME', added.cname_target);
  const waited = await ann.tunnel(['domains', 'add', SHOP, '--wait']);
  expect([waited.code, waited.out]).toEqual([0, expect.stringContaining('certificate valid until')]);
  const tunnel = await serve(harness, ann, edge, web.port, '--domain', SHOP);
  expect((await tunnel.ready()).public_url).toBe(`https://${SHOP}:${outside.ports.https}`);
  expect([await outside.ask(SHOP), await outside.askHttp2(SHOP)]).toEqual([200, 200]);
  const serial = await outside.serialOf(SHOP);

  const dump = await dumpOf(platform);
  expect([dump.includes(SHOP), dump.includes(KEY)]).toEqual([true, false]);
  const said = [platform, edge].flatMap(({ program }) => [...program.stdout, ...program.stderr]).join('\n');
  expect([said.includes(KEY), said.includes('"d":')]).toEqual([false, false]);

  const platformUrl = platform.run.platform_url;
  const credential = readFileSync(credentialFileOf(edge), 'utf8').trim();
  await platform.stop();
  await edge.stop();
  await edge.start();
  expect(await outside.serialOf(SHOP)).toBe(serial);
  // The client reconnects with a key and a domain that the edge remembers from its previous run.
  await eventually(async () => expect(await outside.ask(SHOP)).toBe(200), SOON);

  for (const { dataDir } of [platform, edge]) expect(filesWith(dataDir, KEY)).toBe('');
  const copies = readdirSync(join(edge.dataDir, 'certificates'));
  expect(copies.length).toBeGreaterThan(0);
  for (const file of copies) {
    expect(readFileSync(join(edge.dataDir, 'certificates', file), 'utf8')).not.toContain('CERTIFICATE');
  }

  // A thief with a full copy of the data folder and the credential of another edge cannot use the certificates.
  const folder = await harness.folder();
  // Lock files and run.json mark a running server, so a copy of them would prevent the start.
  const isLock = (path: string): boolean => /(?:lock|run\.json)$/.test(path);
  cpSync(edge.dataDir, join(folder, 'data'), { recursive: true, filter: (path) => !isLock(path) });
  expect(filesWith(join(folder, 'data'), credential)).toBe('');
  const https = await freePort();
  const http = await freePort();
  const other = join(folder, 'other-credential');
  writeFileSync(other, credential.replace(/.{8}$/, 'AAAAAAAA'), { mode: 0o600 });
  const thief = harness.use(
    new Stack(folder, harness.use(await claimPortBlock()), {
      command: 'edge',
      programs: false,
      server: `platform_url = "${platformUrl}"\nplatform_credential_file = "${other}"`,
      tables: '[region]\nid = "west"\nname = "west"',
      env: {
        TUNNEL_SERVER__DOMAIN: DOMAIN,
        TUNNEL_ACME__ENABLED: 'true',
        TUNNEL_SERVER__HTTPS_PORT: `${https}`,
        TUNNEL_SERVER__HTTP_PORT: `${http}`,
      },
    }),
  );
  await thief.start();
  await expect(outside.shakeHands(SHOP, https)).rejects.toThrow();

  await platform.start();
  await eventually(async () => expect(await outside.ask(SHOP)).toBe(200), SOON);
}, 120_000);
