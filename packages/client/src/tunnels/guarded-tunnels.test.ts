// Tunnels with a policy: the registration, the required responses, and an edge without policy support.
import { inspect } from 'node:util';
import { CAPABILITIES, type MessageOf } from '@tunnel/protocol';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, connect } from '../client.ts';
import { ScriptedEdge } from '../scripted-edge.fixture.ts';
import type { StatusEvent } from '../status.ts';
import type { Tunnel } from './tunnel.ts';
import type { TunnelOptions } from './tunnel-spec.ts';

const PASSWORD = 'planted-password-918273645';
const TOKEN = 'planted-token-918273645-long-enough';

const guarded: TunnelOptions = {
  protocol: 'http',
  name: 'shop',
  localPort: 3000,
  services: { zulu: 4001, api: 4000 },
  policy: [
    { auth: { basic: { users: { anna: PASSWORD } }, tokens: [{ name: 'ci', token: TOKEN }] } },
    { match: { path: '/api/**' }, route: 'api' },
  ],
};

let edge: ScriptedEdge;
let client: Client;
let events: StatusEvent[];

beforeEach(async () => {
  edge = await new ScriptedEdge().listen();
  events = [];
});
afterEach(async () => {
  await client.close();
  await edge.close();
});

const start = async (): Promise<void> => {
  client = await connect({
    server: edge.address,
    token: 'tnl_test',
    random: () => -1,
    onStatus: (event) => events.push(event),
  });
};

const registrations = (): MessageOf<'RegisterTunnel'>[] => edge.session.all('RegisterTunnel');
const refusals = (): StatusEvent[] => events.filter(({ type }) => type === 'tunnel-error');
const rulesOf = ({ policy }: MessageOf<'RegisterTunnel'>): Record<string, unknown>[] =>
  (policy as { rules: Record<string, unknown>[] }).rules;

describe('a policy on its way to the edge', () => {
  it('contains passwords as scrypt, tokens as SHA-256, and sorted service names', async () => {
    await start();
    const tunnel = await client.open(guarded);
    const [sent] = registrations();
    expect(sent?.services).toEqual(['api', 'zulu']);
    expect(JSON.stringify(sent)).toMatch(/"anna":"\$scrypt\$ln=14,r=8,p=1\$[^"]{22}\$[^"]{43}"/);
    expect(JSON.stringify(sent)).toMatch(/"sha256":"[0-9a-f]{64}"/);
    const shown = [JSON.stringify(edge.session.received), JSON.stringify(tunnel), inspect(tunnel.spec, { depth: 9 })];
    for (const text of [...shown, inspect(events, { depth: 9 }), JSON.stringify(events)]) {
      expect(text).not.toContain('918273645');
    }
  });

  it('stays the same after a reconnect', async () => {
    await start();
    await client.open(guarded);
    const [before] = registrations();
    edge.session.cut();
    await eventually(() => expect(edge.sessions).toHaveLength(2));
    await eventually(() => expect(registrations()).toHaveLength(1));
    expect(registrations()[0]?.policy).toEqual(before?.policy);
  });
});

describe('an edge that does not apply policies', () => {
  it('gets no request for a tunnel with a policy', async () => {
    edge.capabilities = CAPABILITIES.filter((name) => name !== 'policy');
    await start();
    await expect(client.open(guarded)).rejects.toMatchObject({
      code: 'POLICY_UNSUPPORTED',
      message: "this edge does not know policies: tunnel 'shop' was not opened",
    });
    expect(registrations()).toEqual([]);
    expect(client.tunnels).toEqual([]);
  });

  it.each([
    ['says nothing of it', undefined, 'POLICY_UNSUPPORTED'],
    ['has another policy', 'a'.repeat(64), 'POLICY_INVALID'],
  ])('loses the tunnel at once if it %s', async (_, hash, code) => {
    edge.policyHash = () => hash;
    await start();
    await expect(client.open(guarded)).rejects.toMatchObject({ code });
    await eventually(() => expect(edge.session.all('UnregisterTunnel')).toHaveLength(1));
    expect(client.tunnels).toEqual([]);
    expect(events.filter(({ type }) => type === 'tunnel-opened')).toEqual([]);
  });

  it('still opens tunnels without a policy', async () => {
    edge.capabilities = CAPABILITIES.filter((name) => name !== 'policy');
    await start();
    const tunnel = await client.open({ protocol: 'http', localPort: 3000 });
    expect([tunnel.state, tunnel.guard]).toEqual(['open', null]);
    expect(registrations()[0]?.policy).toBeUndefined();
  });
});

describe('a guarded group member', () => {
  const member: TunnelOptions = { ...guarded, group: 'shop', groupKey: 'the key', policyRevision: 2 };

  it('sends its policy revision, and equal hashes for equal passwords', async () => {
    await start();
    await client.open(member);
    await client.open({ ...member, name: 'another' });
    const [one, other] = registrations();
    expect(one?.policy_revision).toBe(2);
    expect(other?.policy).toEqual(one?.policy);
  });

  it('that resumes its session accepts the current policy of the group', async () => {
    await start();
    const tunnel = await client.open(member);
    edge.script = {
      Auth: (_message, session) => {
        edge.welcome(session, true);
        return true;
      },
    };
    edge.policyHash = () => 'b'.repeat(64);
    edge.session.cut();
    await eventually(() => expect(edge.sessions).toHaveLength(2));
    await eventually(() => expect(tunnel.state).toBe('open'));
    expect(edge.session.all('UnregisterTunnel')).toEqual([]);
  });
});

describe('a policy update of an open tunnel', () => {
  const open = async () => {
    await start();
    return client.open(guarded);
  };

  it('registers the same tunnel id with the new policy', async () => {
    const tunnel = await open();
    await tunnel.update({ policy: [{ deny: true }] });
    const [, second] = registrations();
    expect(second?.tunnel_id).toBe(tunnel.tunnelId);
    expect(second === undefined ? [] : rulesOf(second)).toEqual([{ deny: 403 }]);
    expect(second?.services).toBeUndefined();
    expect(tunnel.guard).not.toBeNull();
    expect(edge.session.all('UnregisterTunnel')).toEqual([]);
  });

  it('leaves the old policy in place when the edge refuses it', async () => {
    const tunnel = await open();
    const [first] = registrations();
    edge.script = {
      RegisterTunnel: ({ request_id }, session) => {
        const reason = 'policy rule 1: no';
        session.send({ type: 'TunnelError', request_id, code: 'POLICY_INVALID', message: reason, retryable: false });
        return true;
      },
    };
    await expect(tunnel.update({ policy: [{ deny: true }] })).rejects.toMatchObject({ code: 'POLICY_INVALID' });
    expect(tunnel.state).toBe('open');
    edge.script = {};
    edge.session.cut();
    await eventually(() => expect(edge.sessions).toHaveLength(2));
    await eventually(() => expect(registrations()).toHaveLength(1));
    expect(registrations()[0]?.policy).toEqual(first?.policy);
  });

  /** Cuts the connection and waits until the tunnel is registered again. Returns a function that sends the pending response. */
  const askedAgain = async (tunnel: Tunnel): Promise<() => void> => {
    let answer: () => void = () => {};
    edge.script = {
      RegisterTunnel: (message, session) => {
        answer = () => void edge.registered(session, message);
        return true;
      },
    };
    edge.session.cut();
    await eventually(() => expect(edge.sessions).toHaveLength(2));
    await eventually(() => expect(registrations()).toHaveLength(1));
    expect(tunnel.state).toBe('away');
    edge.script = {};
    return answer;
  };

  it('during a reconnect follows the old policy, and the tunnel stays open', async () => {
    const tunnel = await open();
    const answer = await askedAgain(tunnel);
    const updated = tunnel.update({ policy: [{ deny: true }] });
    answer();
    await updated;
    const [, second] = registrations();
    expect([tunnel.state, second?.tunnel_id]).toEqual(['open', tunnel.tunnelId]);
    expect(second === undefined ? [] : rulesOf(second)).toEqual([{ deny: 403 }]);
    expect(edge.session.all('UnregisterTunnel')).toEqual([]);
  });

  it('during a reconnect that fails is part of the next registration', async () => {
    const tunnel = await open();
    await askedAgain(tunnel);
    const updated = tunnel.update({ policy: [{ deny: true }] });
    edge.session.cut();
    await updated;
    await eventually(() => expect(edge.sessions).toHaveLength(3));
    await eventually(() => expect(tunnel.state).toBe('open'));
    expect(registrations().map(rulesOf)).toEqual([[{ deny: 403 }]]);
  });

  it('without a response is sent again after a reconnect, because the edge may have applied it', async () => {
    const tunnel = await open();
    edge.script = { RegisterTunnel: () => true };
    const updated = tunnel.update({ policy: [{ deny: true }] });
    await eventually(() => expect(registrations()).toHaveLength(2));
    edge.script = {};
    edge.session.cut();
    await updated;
    await eventually(() => expect(edge.sessions).toHaveLength(2));
    await eventually(() => expect(tunnel.state).toBe('open'));
    expect(registrations().map(rulesOf)).toEqual([[{ deny: 403 }]]);
  });

  /** Updates the policy while the edge is away; the edge refuses the new policy after the reconnect. */
  const changedAway = async (tunnel: Tunnel): Promise<void> => {
    await askedAgain(tunnel);
    edge.script = {
      RegisterTunnel: ({ request_id, policy }, session) => {
        if (!JSON.stringify(policy ?? null).includes('418')) return false;
        const reason = 'policy rule 1: no';
        session.send({ type: 'TunnelError', request_id, code: 'POLICY_INVALID', message: reason, retryable: false });
        return true;
      },
    };
    const updated = tunnel.update({ policy: [{ deny: 418 }] });
    edge.session.cut();
    await updated;
    await eventually(() => expect(edge.sessions).toHaveLength(3));
  };

  it('that is refused after a reconnect restores the old policy and reports the error', async () => {
    const tunnel = await open();
    const [first] = registrations();
    await changedAway(tunnel);
    await eventually(() => expect(tunnel.state).toBe('open'));
    expect(registrations().at(-1)?.policy).toEqual(first?.policy);
    expect(refusals()).toMatchObject([{ fault: { code: 'POLICY_INVALID' }, final: false }]);
  });

  it('that is refused after a reconnect closes a tunnel that had no policy before', async () => {
    await start();
    const tunnel = await client.open({ protocol: 'http', localPort: 3000, name: 'shop' });
    await changedAway(tunnel);
    await eventually(() => expect(tunnel.state).toBe('closed'));
    expect(registrations().every(({ policy }) => policy !== undefined)).toBe(true);
    expect(refusals()).toMatchObject([{ fault: { code: 'POLICY_INVALID' }, final: true }]);
  });

  it('is checked before the edge gets a request', async () => {
    const tunnel = await open();
    await expect(tunnel.update({ policy: [{ route: 'nowhere' }] })).rejects.toThrow();
    expect(registrations()).toHaveLength(1);
  });

  it('can remove the policy', async () => {
    const tunnel = await open();
    await tunnel.update({});
    expect(registrations()[1]?.policy).toBeUndefined();
    expect(tunnel.guard).toBeNull();
  });
});

describe('warnings about a policy', () => {
  it('mention a login over plain HTTP', async () => {
    await start();
    const policy = { login: { provider: 'company' }, rules: [{ auth: { login: { anyone: true as const } } }] };
    const tunnel = await client.open({ protocol: 'http', localPort: 3000, policy });
    expect(tunnel.warnings.join()).toContain('plain http');
  });
});
