// Tests of the policies of a running client: a reload of a changed policy, and of a policy that the edge refuses.
import { writeFileSync } from 'node:fs';
import { eventually } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { it } from '../in-process.fixture.ts';
import { ClientTrial } from './client.fixture.ts';

const SHOP = ['shop: { proto: http, local_port: 3000, policy: shop.yml }', 'db: { proto: tcp, local_port: 5432 }'];

const started = async (trial: ClientTrial, ...flags: string[]) => {
  const program = await trial.start(...flags);
  await program.ready(2);
  const [shop] = trial.edge.session.all('RegisterTunnel').filter(({ name }) => name === 'shop');
  return { program, shop, id: program.events('ready').find(({ name }) => name === 'shop')?.['tunnel_id'] };
};

const ofShop = (trial: ClientTrial) => trial.edge.session.all('RegisterTunnel').filter(({ name }) => name === 'shop');

describe.concurrent('a reload', () => {
  it('sends a changed policy under the same tunnel id, and changes no other tunnel', async ({ harness }) => {
    const trial = await ClientTrial.begin(harness);
    trial.write('shop.yml', '- deny: 403\n');
    trial.config(SHOP);
    const { id } = await started(trial);
    trial.write('shop.yml', '- deny: 404\n');
    const out = 'added 0, removed 0, changed 1, unchanged 1\n  changed: shop';
    expect(await trial.ask('reload')).toEqual({ code: 0, out, err: '' });
    const [, second, ...more] = ofShop(trial);
    expect([second?.tunnel_id, second?.policy, more]).toEqual([id, { login: null, rules: [{ deny: 404 }] }, []]);
    expect(trial.edge.session.all('UnregisterTunnel')).toEqual([]);
  });

  it('detects a changed secret file, and an unchanged policy', async ({ harness }) => {
    const trial = await ClientTrial.begin(harness);
    trial.write('users', 'anna:one\n');
    trial.write('shop.yml', '- auth: { basic: { users_file: users } }\n');
    trial.config(SHOP);
    await started(trial);
    expect((await trial.ask('reload')).out).toContain('changed 0, unchanged 2');
    expect(ofShop(trial)).toHaveLength(1);
    trial.write('users', 'anna:two\n');
    expect((await trial.ask('reload')).out).toContain('changed 1, unchanged 1');
    expect(ofShop(trial)).toHaveLength(2);
  });

  it('with a policy refused by the edge keeps the old policy, reports the reason, and ends with 4', async ({
    harness,
  }) => {
    const trial = await ClientTrial.begin(harness);
    trial.write('shop.yml', '- deny: 403\n');
    trial.config(SHOP);
    const { program, shop } = await started(trial);
    trial.edge.script = {
      RegisterTunnel: ({ request_id, name }, session) => {
        if (name !== 'shop') return false;
        const message = "policy login: provider 'x' is not known to this edge";
        session.send({ type: 'TunnelError', request_id, code: 'POLICY_INVALID', message, retryable: false });
        return true;
      },
    };
    trial.write('shop.yml', 'login: { provider: x }\nrules: [{ auth: { login: { anyone: true } } }]\n');
    const refusal = expect.stringContaining("shop: policy login: provider 'x' is not known to this edge") as string;
    expect(await trial.ask('reload')).toEqual({ code: 4, out: '', err: refusal });
    const [status] = JSON.parse((await trial.ask('status', '--json')).out) as { tunnels: { state: string }[] }[];
    expect(status?.tunnels.map(({ state }) => state)).toEqual(['open', 'open']);
    // After a lost connection the client registers the tunnel with the policy in force.
    trial.edge.script = {};
    trial.edge.session.cut();
    await program.waitFor('reconnected');
    expect(ofShop(trial)[0]?.policy).toEqual(shop?.policy);
  });

  it('with an invalid policy sends no change, and ends with 2', async ({ harness }) => {
    const trial = await ClientTrial.begin(harness);
    const file = trial.write('shop.yml', '- deny: 403\n');
    trial.config(SHOP);
    await started(trial);
    trial.write('shop.yml', '- deny: 403\n- dny: true\n');
    const { code, err } = await trial.ask('reload');
    expect(code).toBe(2);
    expect(err).toContain(`${file}:2: unknown key \`[1].dny\`; did you mean \`deny\`?`);
    expect(ofShop(trial)).toHaveLength(1);
  });

  it('runs automatically with --watch when a policy file changes', async ({ harness }) => {
    const trial = await ClientTrial.begin(harness);
    const file = trial.write('shop.yml', '- deny: 403\n');
    trial.config(SHOP);
    const { program } = await started(trial, '--watch');
    // Writes the file repeatedly, because the watch may start after the first write.
    let status = 404;
    await eventually(
      () => {
        writeFileSync(file, `- deny: ${status}\n`);
        status += 1;
        expect(program.events('reloaded').length).toBeGreaterThan(0);
      },
      { intervalMs: 1000 },
    );
    await eventually(() => expect(ofShop(trial).length).toBeGreaterThan(1));
  });
});
