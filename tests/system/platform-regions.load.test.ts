// Test of a platform with two remote edges over HTTP: keys work at both edges, and each region is queried for its own data.
import type { CapturedRequest, CaptureList } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { askHttp, endpointOf, startWeb } from './http-tunnels.fixture.ts';
import { it } from './in-process.fixture.ts';
import { MANY_LOGINS, memberFlags, openWith, Person, startEdgeOf } from './platform-test.fixture.ts';
import { serverCommand } from './server-command.fixture.ts';

const SOON = { timeoutMs: 20_000 };

it('a platform serves keys, usage, groups, requests and replays of two regions, and a stopped region is a warning', async ({
  harness,
}) => {
  const platform = await harness.stack({ command: 'platform', tables: MANY_LOGINS });
  const [west, east] = await Promise.all([
    startEdgeOf(harness, platform, 'west'),
    startEdgeOf(harness, platform, 'east', { programs: true }),
  ]);
  const person = await Person.signUp(platform);
  const key = await person.newKey();
  const heard: string[] = [];
  const web = harness.use(
    await startWeb((request, response) => {
      heard.push(request.url ?? '');
      response.end(`served ${request.url}`);
    }),
  );
  const flags = await memberFlags(harness, 'shop');
  const tunnels = await Promise.all(
    [west, east].map((edge) => openWith(harness, edge, key, ['http', web.port, ...flags])),
  );
  const [inWest, inEast] = await Promise.all(tunnels.map((tunnel) => tunnel.ready()));
  if (inWest === undefined || inEast === undefined) throw new Error('both are there');
  await askHttp(endpointOf(inEast.public_url), { path: '/east' });

  await eventually(async () => {
    const rows = (await person.log()).map(({ tunnel_id, region_id, request_count }) => [
      tunnel_id,
      region_id,
      request_count,
    ]);
    expect(new Map(rows.map(([id, ...rest]) => [id, rest]))).toEqual(
      new Map([
        [inWest.tunnel_id, ['west', 0]],
        [inEast.tunnel_id, ['east', 1]],
      ]),
    );
  }, SOON);
  const { groups, warnings } = await person.pools();
  expect(groups.map(({ region_id, member_count }) => `${region_id} ${member_count}`).toSorted()).toEqual([
    'east 1',
    'west 1',
  ]);
  expect(warnings).toEqual([]);

  const path = `/usage/tunnels/${inEast.tunnel_id}/requests`;
  const { requests } = await person.get<CaptureList>(path);
  expect(requests).toMatchObject([{ method: 'GET', path: '/east', status: 200 }]);
  const replay = await person.call<CapturedRequest>(`${path}/${requests[0]?.id}/replay`, { method: 'POST' });
  expect([replay.status, replay.body.status, heard]).toEqual([200, 200, ['/east', '/east']]);

  // The stopped edge acts like a machine that hangs. In time, the response names its region and shows the remaining region.
  east.program.signal('SIGSTOP');
  const begun = performance.now();
  const partly = await person.pools();
  expect(performance.now() - begun).toBeLessThan(12_000);
  expect(partly.groups.map(({ region_id }) => region_id)).toEqual(['west']);
  expect(partly.warnings).toEqual([expect.stringContaining('east')]);
  const late = await person.call(path);
  expect([late.status, late.body]).toEqual([502, expect.objectContaining({ code: 'EDGE_AWAY' })]);
  east.program.signal('SIGCONT');
  await eventually(async () => expect((await person.pools()).groups.length).toBe(2), SOON);

  // A spend cap closes the tunnels on every edge. Once the cap is removed, every edge accepts the same key at once.
  await serverCommand(platform, 'admin', 'set-plan', person.email, 'payg');
  const setCap = (spend_cap_cents: number | null) =>
    person.call('/billing/spend-cap', { method: 'PATCH', body: { spend_cap_cents } });
  expect((await setCap(0)).status).toBe(200);
  expect(await Promise.all(tunnels.map((tunnel) => tunnel.exitCode()))).toEqual([6, 6]);
  for (const { stderr } of tunnels) expect(stderr.join('\n')).toContain('spend cap of $0.00 reached');
  expect((await setCap(null)).status).toBe(200);
  const again = await Promise.all(
    [west, east].map((edge) => openWith(harness, edge, key, ['http', web.port, ...flags])),
  );
  await Promise.all(again.map((tunnel) => tunnel.ready()));

  // A key revoked at the platform is rejected by every edge.
  expect((await person.call(`/keys/${key.id}`, { method: 'DELETE' })).status).toBe(204);
  expect(await Promise.all(again.map((tunnel) => tunnel.exitCode()))).toEqual([3, 3]);
}, 120_000);
