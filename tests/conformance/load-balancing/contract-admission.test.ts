// Contract rows about admission: which client may join which group, and the answers to rejected joins.
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { configLines, startFile } from './config-file.fixture.ts';
import { FrameTap } from './frame-tap.fixture.ts';
import { fresh, GroupEdge, sha256 } from './group-edge.fixture.ts';
import { join, startNamed } from './members.fixture.ts';
import { memberRequest, RawControl } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';
import { WebhookReceiver } from './webhook-receiver.fixture.ts';

const shared = new Harness();
let edge: GroupEdge;
beforeAll(async () => {
  edge = await GroupEdge.start(shared);
});
afterAll(() => shared.close());

const tcp = (group: string, key = 'key') => memberRequest(group, { protocol: 'tcp', key });

describe.concurrent('Contract', () => {
  it(row('Contract', 6), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    expect((await raw.join(memberRequest('Shop'))).label).toBe('shop');
    for (const name of ['two words', 'under_score', 'www', '-x']) {
      const { code, message } = await raw.refusal(memberRequest(name));
      expect([code, message]).toEqual(['GROUP_FIELDS_INVALID', expect.stringContaining(name)]);
      expect(message).toMatch(/subdomain/);
    }
    const subdomain = fresh();
    expect((await raw.join(memberRequest('two words', { subdomain }))).label).toBe(subdomain);
  });

  it(row('Contract', 7), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    for (const name of ['', 'x'.repeat(101), 'a@b', 'line\nbreak', 'bell\u0007']) {
      const answers = [await raw.refusal(tcp(name)), await raw.refusal(memberRequest(name, { subdomain: fresh() }))];
      expect(answers.map(({ code }) => code)).toEqual(['GROUP_NAME_INVALID', 'GROUP_NAME_INVALID']);
    }
    for (const name of ['x', 'y'.repeat(100), 'заказы 🛒', 'a b/c"d\\e']) {
      await raw.join(tcp(name));
      expect((await edge.group(name)).member_count).toBe(1);
    }
  });

  it(row('Contract', 8), async ({ harness }) => {
    const group = fresh();
    const alice = await RawControl.enter(harness, edge, 'alice');
    const bob = await RawControl.enter(harness, edge, 'bob');
    const other = await RawControl.enter(harness, edge, 'alice-2');
    const hers = await alice.join(tcp(group, 'hers'));
    // For alice's account a wrong group key is an error, whichever API key is used.
    expect((await alice.refusal(tcp(group, 'wrong'))).message).toBe('group key does not match');
    expect((await other.refusal(tcp(group, 'wrong'))).message).toBe('group key does not match');
    // Bob's account gets a separate group of the same name, and cannot lock alice out.
    const his = await bob.join(tcp(group, 'his'));
    expect(his.assigned_port).not.toBe(hers.assigned_port);
    expect((await alice.join(tcp(group, 'hers'))).assigned_port).toBe(hers.assigned_port);
    // A client of any account with the right group key can join.
    expect((await bob.join(tcp(group, 'hers'))).assigned_port).toBe(hers.assigned_port);
  });

  it(row('Contract', 9), async ({ harness }) => {
    const group = fresh();
    const solo = fresh('solo');
    const raw = await RawControl.enter(harness, edge);
    await raw.join(memberRequest(group));
    await raw.join({ protocol: 'http', subdomain: solo });
    const code = async (request: Parameters<RawControl['refusal']>[0]) => (await raw.refusal(request)).code;
    const wrong = { key: 'wrong', protocol: 'https' as const };
    // Invalid fields are reported before conflicts with existing names.
    expect(await code(memberRequest('a@b', { ...wrong, subdomain: group }))).toBe('GROUP_NAME_INVALID');
    expect(await code(memberRequest(group, { ...wrong, subdomain: 'not_valid' }))).toBe('TUNNEL_SUBDOMAIN_INVALID');
    expect(await code({ protocol: 'http', subdomain: group })).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    expect(await code(memberRequest(solo, wrong))).toBe('GROUP_KEY_MISMATCH');
    // The group's protocol is revealed only to clients with the right group key.
    expect(await code(memberRequest(group, wrong))).toBe('GROUP_KEY_MISMATCH');
    expect(await code(memberRequest(group, { protocol: 'https' }))).toBe('GROUP_PROTOCOL_MISMATCH');
  });

  it(row('Contract', 13, 'by the edge'), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const { group_key_hash: _, ...noKey } = memberRequest(fresh());
    const { group: __, ...noGroup } = memberRequest(fresh());
    const odd = [
      noKey,
      noGroup,
      memberRequest(fresh(), { health_check: { type: 'http' } }),
      memberRequest(fresh(), { health_check: { type: 'http', path: 'healthz' } }),
      memberRequest(fresh(), { health_check: { type: 'http', path: '/with space' } }),
      memberRequest(fresh(), { health_check: { type: 'http', path: '/a\r\nX-Evil: 1' } }),
    ];
    for (const request of odd) {
      const { code, message } = await raw.refusal(request);
      expect([code, message]).toEqual(['GROUP_FIELDS_INVALID', expect.any(String)]);
    }
    for (const protocol of ['udp', 'p2p'] as const) await raw.refusal(memberRequest(fresh(), { protocol }));
  });

  it(row('Contract', 13, 'by the client, at the line of the file'), async ({ harness }) => {
    const entry = { proto: 'http', local_port: 9, group: 'web', group_key: 'key' };
    const without = (key: keyof typeof entry) =>
      Object.fromEntries(Object.entries(entry).filter(([name]) => name !== key));
    const check = (fields: object) => ({ ...entry, health_check: { type: 'http', ...fields } });
    const cases: [string, Readonly<Record<string, unknown>>, RegExp][] = [
      ['group without group_key', without('group_key'), /:7:.*group/],
      ['group_key without group', without('group'), /:7:.*group_key/],
      ['http without path', check({}), /:9:.*health_check\.path/],
      ['path without a slash', check({ path: 'x' }), /:9:.*health_check\.path/],
      ['path with a space', check({ path: '/a b' }), /:9:.*health_check\.path/],
      ['group on udp', { ...entry, proto: 'udp' }, /:7:.*groups exist for http and tcp tunnels only/],
    ];
    await Promise.all(
      cases.map(async ([what, tunnel, line]) => {
        const program = await startFile(harness, configLines(edge.server, 'key-of-alice', { web: tunnel }));
        expect([what, await program.exitCode()]).toEqual([what, 2]);
        expect(program.stderr.join('\n'), what).toMatch(line);
      }),
    );
  });

  it(row('Contract', 14), async ({ harness }) => {
    const tap = await FrameTap.start(harness, edge);
    const service = await startNamed(harness);
    const groupKey = 'ключ 🔑 with spaces ';
    await join(harness, edge, { group: fresh(), groupKey, localPort: service.port }, { server: tap.server });
    expect(tap.of('RegisterTunnel')[0]?.['group_key_hash']).toBe(sha256(groupKey));
    const raw = await RawControl.enter(harness, edge);
    for (const group_key_hash of ['', 'key', sha256('x').toUpperCase(), sha256('x').slice(1), `${sha256('x')}0`]) {
      expect((await raw.refusal({ ...memberRequest(fresh()), group_key_hash })).code).toBe('GROUP_FIELDS_INVALID');
    }
  });

  it(row('Contract', 15), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const web = fresh();
    const db = fresh();
    const port = new URL(edge.stack.run.http_url).port;
    for (let member = 0; member < 2; member += 1) {
      const named = await raw.join(memberRequest(web));
      expect(named).toMatchObject({ label: web, public_url: `http://${web}.localhost:${port}`, warnings: [] });
      expect(named).not.toHaveProperty('assigned_port');
      const numbered = await raw.join(tcp(db));
      expect(numbered).toMatchObject({ label: String(numbered.assigned_port), warnings: [] });
      expect(numbered.public_url).toBe(`tcp://localhost:${numbered.assigned_port}`);
    }
  });

  it(row('Contract', 20), async ({ harness }) => {
    const tenant = await WebhookReceiver.start(harness);
    const operator = await WebhookReceiver.start(harness);
    const lines = `alert_webhook_url = "${operator.url('/operator')}"\nalert_allow_private = false`;
    const guarded = await GroupEdge.start(harness, { lines });
    const raw = await RawControl.enter(harness, guarded);
    const group = fresh();
    const health_check = { type: 'tcp', alert_webhook: tenant.url('/path-is-secret') } as const;
    const member = await raw.join(memberRequest(group, { health_check }));
    // The warning comes with the registration and omits the secret part of the URL.
    expect(member.warnings).toEqual([expect.stringContaining('127.0.0.1')]);
    expect(member.warnings.join()).not.toContain('path-is-secret');
    for (let edges = 1; edges <= 2; edges += 1) {
      await raw.healthy(member);
      await raw.unhealthy(member);
      await operator.until(group, edges);
    }
    expect(tenant.connections).toBe(0);
    const service = await startNamed(harness);
    const real = await join(harness, guarded, {
      group: fresh(),
      localPort: service.port,
      healthCheck: { alertWebhook: tenant.url() },
    });
    expect(real.tunnel.warnings).toEqual([expect.stringContaining('127.0.0.1')]);
  });
});
