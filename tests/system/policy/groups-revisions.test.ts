// Tests of a policy that changes member by member in a running group: no visitor notices the change, and no visitor is served by an older
// policy again.
import { describe, expect } from 'vitest';
import { askHttp, endpointOf, startWeb } from '../http-tunnels.fixture.ts';
import { it } from '../in-process.fixture.ts';
import { GROUPS_ON, RollingMember, RollVisitors, revisionOf } from './rolling-group.fixture.ts';

const ROLLS = 5;
const TIMEOUT_MS = 120_000;

describe.concurrent('the policy of a group', () => {
  it('switches to the highest revision at once under load, five times, and no request fails or reaches a closed path', {
    timeout: TIMEOUT_MS,
  }, async ({ harness }) => {
    const stack = await harness.stack(GROUPS_ON);
    const reached: string[] = [];
    const closed = (url: string): void => void reached.push(url);
    const members: RollingMember[] = [];
    for (let n = 0; n < 3; n += 1) {
      members.push(await RollingMember.start(harness, stack, { revision: 1, closed }));
      await members[n]?.program.ready();
    }
    const [first] = members as [RollingMember, ...RollingMember[]];
    const visitors = harness.use(new RollVisitors(await first.endpoint(), { floor: 1 }));
    await visitors.more(10);
    for (let revision = 2; revision <= ROLLS + 1; revision += 1) {
      for (const member of members) {
        await member.roll(revision);
        // From the first response on, the new revision applies to every visitor.
        visitors.floor = revision;
        await visitors.more(3);
      }
    }
    await visitors.close();
    expect([visitors.problems, reached]).toEqual([[], []]);
    expect(visitors.seen).toEqual(new Set(Array.from({ length: ROLLS + 1 }, (_, at) => at + 1)));
    for (const { program } of members) expect(program.events('error')).toEqual([]);
    const tunnels = await stack.tunnels();
    expect(tunnels).toHaveLength(members.length);
    for (const row of tunnels) expect(row).toMatchObject({ policy: { rules: 2, revision: ROLLS + 1 } });
  });

  it('is not replaced by a new member with an older revision, and the new member ends with the reason', async ({
    harness,
  }) => {
    const stack = await harness.stack(GROUPS_ON);
    const closed = (): void => {};
    const member = await RollingMember.start(harness, stack, { revision: 3, closed });
    const endpoint = await member.endpoint();
    const late = await RollingMember.start(harness, stack, { revision: 2, closed });
    expect(await late.program.exitCode()).not.toBe(0);
    const said = [...late.program.stdout, ...late.program.stderr].join('\n');
    expect(said).toMatch(
      /group policy does not match: the group has revision 3 \([0-9a-f]{8}\), this member brings revision 2 \([0-9a-f]{8}\)/,
    );
    expect(revisionOf(await askHttp(endpoint))).toBe(3);
  });

  it('applies even if no member is healthy', async ({ harness }) => {
    const stack = await harness.stack(GROUPS_ON);
    const dead = await startWeb(() => {});
    const { port } = dead;
    await dead.close();
    // No member is healthy. Strangers are rejected all the same, and do not learn of the problem.
    const flags = ['--group', 'dead', '--group-key-env', 'GROUP_KEY', '--health', 'tcp', '--deny-cidr', '127.0.0.0/8'];
    const where = ['--server', stack.control, '--token-file', stack.tokenFile];
    const program = await harness.run(['http', String(port), '--json', ...where, ...flags], {
      env: { GROUP_KEY: 'a key of its own' },
    });
    const { public_url } = await program.ready();
    const answer = await askHttp(endpointOf(public_url));
    expect([answer.status, answer.headers['x-tunnel-error']]).toEqual([403, 'POLICY_DENIED']);
  });
});

it('the policy view counts matches and responses of each rule, and a response of a rule is no request of the tunnel', async ({
  harness,
}) => {
  const stack = await harness.stack(GROUPS_ON);
  const member = await RollingMember.start(harness, stack, { revision: 0, closed: () => {} });
  const { tunnel_id } = await member.program.ready();
  const policy = (await (await stack.api(`/api/tunnels/${tunnel_id}/policy`)).json()) as {
    rules: { index: number; name: string; matched: number; answered: number }[];
  };
  expect(policy).toMatchObject({ revision: 0, login: null, operator_rules: 0 });
  const endpoint = await member.endpoint();
  await askHttp(endpoint);
  await askHttp(endpoint, { path: '/closed/door' });
  const shown = (await (await stack.api(`/api/tunnels/${tunnel_id}/policy`)).json()) as typeof policy;
  expect(shown.rules.map(({ index, name, matched, answered }) => [index, name, matched, answered])).toEqual([
    [1, 'says 0', 2, 0],
    [2, 'closed', 1, 1],
  ]);
  // A response of a rule is not counted as a request of the member.
  expect((await stack.tunnel(tunnel_id))?.request_count).toBe(1);
});
