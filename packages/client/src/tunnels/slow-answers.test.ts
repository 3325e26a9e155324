// An edge is alive even if registrations are answered slowly, one after the other.
import type { MessageOf } from '@tunnel/protocol';
import { eventually, FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { connect } from '../client.ts';
import { ScriptedEdge } from '../scripted-edge.fixture.ts';

it('a registration waits while the edge answers others, and at most 15 s after the last answer', async () => {
  const clock = new FakeClock();
  const edge = await new ScriptedEdge().listen();
  const asked: MessageOf<'RegisterTunnel'>[] = [];
  edge.script = { RegisterTunnel: (message) => asked.push(message) > 0 };
  const client = await connect({ server: edge.address, token: 'tnl_test', clock });
  try {
    const opened: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      void client.open({ protocol: 'tcp', name, localPort: 1 }).then(
        () => opened.push(name),
        () => {},
      );
    }
    await eventually(() => expect(asked).toHaveLength(3));
    const session = edge.session;
    for (const [index, names] of [['a'], ['a', 'b']].entries()) {
      await clock.advance(10_000);
      edge.registered(session, asked[index] as MessageOf<'RegisterTunnel'>);
      await eventually(() => expect(opened).toEqual(names));
    }
    expect([client.state, edge.sessions.length]).toEqual(['connected', 1]);
    await clock.advance(15_000);
    expect(client.state).toBe('reconnecting');
  } finally {
    void client.close();
    await edge.close();
  }
});

it('at most 256 registrations run at once, and a tunnel closed before its turn is skipped', async () => {
  const clock = new FakeClock();
  const edge = await new ScriptedEdge().listen();
  const asked: MessageOf<'RegisterTunnel'>[] = [];
  edge.script = { RegisterTunnel: (message) => asked.push(message) > 0 };
  const client = await connect({ server: edge.address, token: 'tnl_test', clock });
  try {
    const opened: string[] = [];
    for (let n = 0; n < 300; n += 1) {
      void client.open({ protocol: 'tcp', name: `t${n}`, localPort: 1 }).then(
        ({ name }) => opened.push(name),
        () => {},
      );
    }
    await eventually(() => expect(asked).toHaveLength(256));
    await client.find('t299')?.close();
    const { session } = edge;
    for (let n = 0; n < 299; n += 1) {
      await eventually(() => expect(asked.length).toBe(Math.min(299, 256 + n)));
      edge.registered(session, asked[n] as MessageOf<'RegisterTunnel'>);
    }
    await eventually(() => expect(opened).toHaveLength(299));
    expect(asked.map(({ name }) => name)).toEqual(Array.from({ length: 299 }, (_, n) => `t${n}`));
    expect(client.state).toBe('connected');
  } finally {
    void client.close();
    await edge.close();
  }
});
