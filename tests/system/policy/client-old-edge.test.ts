// Tests that a tunnel with a policy is never published without the policy. The client ensures that, even if the edge does not.
import { CAPABILITIES } from '@tunnel/protocol';
import { eventually } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { it } from '../in-process.fixture.ts';
import { ClientTrial } from './client.fixture.ts';

const OLD = CAPABILITIES.filter((name) => name !== 'policy');

describe.concurrent('a tunnel with a policy', () => {
  it('is never requested from an edge without policy support: exit code 4', async ({ harness }) => {
    const trial = await ClientTrial.begin(harness);
    trial.edge.capabilities = OLD;
    const where = ['--server', trial.edge.address, '--token', 'tnl_test', '--no-inspect'];
    const { code, err } = await trial.ask('http', '3000', '--name', 'shop', '--allow-cidr', '10.0.0.0/8', ...where);
    expect(code).toBe(4);
    expect(err).toContain("this edge does not know policies: tunnel 'shop' was not opened");
    expect(trial.edge.session.all('RegisterTunnel')).toEqual([]);
  });

  it('is withdrawn from an edge that does not confirm the policy: exit code 4', async ({ harness }) => {
    const trial = await ClientTrial.begin(harness);
    trial.edge.policyHash = () => undefined;
    const where = ['--server', trial.edge.address, '--token', 'tnl_test', '--json'];
    const { code, out } = await trial.ask('tcp', '5432', '--name', 'db', '--deny-cidr', '10.0.0.0/8', ...where);
    expect(code).toBe(4);
    expect(out).not.toContain('"event":"ready"');
    expect(trial.edge.session.all('UnregisterTunnel')).toHaveLength(1);
  });

  it('does not affect the other tunnels of its client', async ({ harness }) => {
    const trial = await ClientTrial.begin(harness);
    trial.edge.capabilities = OLD;
    trial.config([
      'open: { proto: http, local_port: 3000 }',
      'shop: { proto: http, local_port: 3001, policy: [{ deny: true }] }',
    ]);
    const program = await trial.start();
    expect((await program.ready()).name).toBe('open');
    await eventually(() =>
      expect(program.events('error')).toMatchObject([{ code: 'POLICY_UNSUPPORTED', name: 'shop' }]),
    );
    expect(trial.edge.session.all('RegisterTunnel').map(({ name }) => name)).toEqual(['open']);
    expect(program.exit).toBeNull();
  });
});
