import { PassThrough, Writable } from 'node:stream';
import type { GroupMemberSummary, GroupSummary } from '@tunnel/contract';
import pc from 'picocolors';
import { expect, it } from 'vitest';
import type { ReadGroups } from '../api/edge-api.ts';
import { chooseGroupOutput, groupLines } from './groups.ts';

const PLAIN = pc.createColors(false);

const member = (id: string, more: Partial<GroupMemberSummary> = {}): GroupMemberSummary => ({
  tunnel_id: id,
  session_id: 'ses_1',
  client_addr: '192.0.2.7:5000',
  request_count: 1,
  bytes_proxied: 1_500_000,
  healthy: true,
  consecutive_failures: 0,
  total_health_failures: 0,
  name: 'web',
  // Without a time zone, so that the expected output is the same in every time zone.
  connected_since: '2030-01-02T03:04:05.678',
  health_check_kind: 'http',
  has_alert_webhook: false,
  ...more,
});

const group = (members: GroupMemberSummary[], more: Partial<GroupSummary> = {}): GroupSummary => {
  const healthy = members.filter((one) => one.healthy).length;
  return {
    protocol: 'http',
    label: 'web',
    name: 'shop',
    key_hash_short: '0123abcd',
    region_id: 'local',
    member_count: members.length,
    healthy_count: healthy,
    unhealthy_count: members.length - healthy,
    total_dispatches: 1204,
    total_health_failures: 0,
    members,
    ...more,
  };
};

const { health_check_kind: _, name: _name, ...unprobed } = member('tun_unprobed');

it('`tunnel groups` prints a block for each group and a line with the computer for each member', () => {
  const down = member('tun_2', { client_name: 'server', healthy: false, consecutive_failures: 3, request_count: 20 });
  const fresh = member('tun_new', { client_name: 'laptop', client_addr: '192.0.2.8:6000', healthy: false });
  const lines = groupLines(
    [
      group([member('tun_1', { client_name: 'laptop' }), down, unprobed, fresh], { total_health_failures: 1 }),
      group([member('tun_9', { client_name: 'nas', name: 'db' })], {
        protocol: 'tcp',
        label: '20000',
        name: 'db',
        total_dispatches: 1,
      }),
    ],
    PLAIN,
  );
  expect(lines).toEqual([
    'shop  http web  ●●○○ 2 of 4 healthy  1204 connections  1 failure',
    '  laptop (192.0.2.7:5000)  web           healthy                1 request    1.5 MB  since 2030-01-02 03:04:05',
    '  server                   web           unhealthy, 3 failures  20 requests  1.5 MB  since 2030-01-02 03:04:05',
    '  192.0.2.7:5000           tun_unprobed  no health check        1 request    1.5 MB  since 2030-01-02 03:04:05',
    '  laptop (192.0.2.8:6000)  web           not healthy yet        1 request    1.5 MB  since 2030-01-02 03:04:05',
    '',
    'db  tcp 20000  ● 1 of 1 healthy  1 connection',
    '  nas  db  healthy  1 connection  1.5 MB  since 2030-01-02 03:04:05',
  ]);
});

it.each([
  [0, 100, '○○○○○○○○○○○○○○○○○○○○'],
  [1, 100, '●○○○○○○○○○○○○○○○○○○○'],
  [50, 100, '●●●●●●●●●●○○○○○○○○○○'],
  [99, 100, '●●●●●●●●●●●●●●●●●●●○'],
  [100, 100, '●●●●●●●●●●●●●●●●●●●●'],
  [1, 2, '●○'],
])(
  'the health bar for %i of %i healthy members rounds neither healthy nor failed members away',
  (healthy, members, bar) => {
    const [head] = groupLines([group([], { healthy_count: healthy, member_count: members })], PLAIN);
    expect(head).toContain(`${bar} ${healthy} of ${members} healthy`);
  },
);

it('control characters in a group name are not printed', () => {
  const [head] = groupLines([group([], { name: 'a\u001b[2Jb' })], PLAIN);
  expect(head).toMatch(/^a \[2Jb {2}http/);
});

it('without groups the output says how to create one', () => {
  expect(groupLines([], PLAIN).join('\n')).toMatch(
    /^no groups\n.*--group-key-file.*\n.*`tunnel group-key`.*\n.*load_balancing/,
  );
});

it('an unchanged list of groups is not printed again', () => {
  let printed = '';
  const stdout = new Writable({
    write: (chunk, _encoding, done) => {
      printed += String(chunk);
      done();
    },
  });
  const output = chooseGroupOutput({ stdout, stderr: new PassThrough(), env: {} }, { json: false, watch: true });
  const read = (...groups: GroupSummary[]): ReadGroups => ({ groups, json: groups });
  for (const label of ['web', 'web', 'api']) output.show(read(group([member('tun_1')], { label })));
  const blocks = printed.trimEnd().split('\n\n');
  expect(blocks.map((block) => /web|api/.exec(block)?.[0])).toEqual(['web', 'api']);
});
