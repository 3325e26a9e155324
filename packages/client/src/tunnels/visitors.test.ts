import type { ByteReader, MuxStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { eventually, rethrow, startEchoServer, type TcpServer } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, connect } from '../client.ts';
import { ScriptedEdge, type ScriptedSession } from '../scripted-edge.fixture.ts';
import type { StatusEvent } from '../status.ts';

let edge: ScriptedEdge;
let echo: TcpServer;
let client: Client;
let events: StatusEvent[];

beforeEach(async () => {
  edge = await new ScriptedEdge().listen();
  echo = await startEchoServer();
  events = [];
  client = await connect({
    server: edge.address,
    token: 'tnl_test',
    random: () => -1,
    onStatus: (event) => events.push(event),
  });
});
afterEach(async () => {
  await client.close();
  await edge.close();
  await echo.close();
});

/** A visitor as seen by the edge's relay. */
class Visitor implements ByteReader {
  text = '';
  ended = false;
  reset: StreamReason | null = null;
  refused: StreamReason | null = null;
  stream: MuxStream | null = null;

  constructor(session: ScriptedSession, tunnelId: string) {
    session.mux.open(
      { tunnelId, visitor: '203.0.113.9:50000' },
      {
        onOpened: (stream) => {
          this.stream = stream;
          stream.read(this);
        },
        onRefused: (reason) => {
          this.refused = reason;
        },
        abandon: rethrow,
      },
    );
  }

  say(text: string): void {
    const bytes = Buffer.from(text);
    this.stream?.write(bytes, 0, bytes.length, false);
  }

  onData(bytes: Buffer, start: number, end: number): boolean {
    this.text += bytes.toString('latin1', start, end);
    return true;
  }

  onDrain(): void {}

  onEnd(): void {
    this.ended = true;
  }

  onReset(reason: StreamReason): void {
    this.reset = reason;
  }

  abandon(error: unknown): void {
    rethrow(error);
  }
}

const openEcho = () => client.open({ protocol: 'tcp', name: 'echo', localPort: echo.port });

const visit = async (tunnelId: string): Promise<Visitor> => {
  const visitor = new Visitor(edge.session, tunnelId);
  await eventually(() => expect(visitor.stream).not.toBeNull());
  return visitor;
};

describe('a visitor of a tcp tunnel', () => {
  it('reaches the local service, and is counted while bytes flow', async () => {
    const tunnel = await openEcho();
    const visitor = await visit(tunnel.tunnelId);
    visitor.say('hello');
    await eventually(() => expect(visitor.text).toBe('hello'));
    expect(tunnel.counts).toEqual({ connections: 1, open: 1, requests: 0, edgeAnswered: 0, bytesIn: 5, bytesOut: 5 });
    visitor.stream?.end();
    await eventually(() => expect(visitor.ended).toBe(true));
    await eventually(() =>
      expect(tunnel.counts).toEqual({ connections: 1, open: 0, requests: 0, edgeAnswered: 0, bytesIn: 5, bytesOut: 5 }),
    );
  });

  it('is refused with the reason when the local service is down, which is reported once', async () => {
    await echo.close();
    const tunnel = await openEcho();
    const visitors = [new Visitor(edge.session, tunnel.tunnelId), new Visitor(edge.session, tunnel.tunnelId)];
    for (const visitor of visitors) {
      await eventually(() => expect(visitor.refused?.code).toBe('dial-refused'));
    }
    const heard = events.filter((event) => event.type === 'local-error');
    expect(heard).toHaveLength(1);
    expect(heard[0]).toMatchObject({ fault: { code: 'CLIENT_LOCAL_DIAL' } });
    expect(tunnel.counts.open).toBe(0);
  });

  it('of an unknown tunnel is refused', async () => {
    const visitor = new Visitor(edge.session, 'tun_nobody');
    await eventually(() => expect(visitor.refused?.code).toBe('unknown-tunnel'));
  });

  it('stays connected when the control connection is lost and the session resumes', async () => {
    const tunnel = await openEcho();
    const visitor = await visit(tunnel.tunnelId);
    visitor.say('before ');
    await eventually(() => expect(visitor.text).toBe('before '));
    edge.session.cut();
    await eventually(() => expect(events.filter((event) => event.type === 'reconnected')).toHaveLength(1));
    visitor.say('after');
    await eventually(() => expect(visitor.text).toBe('before after'));
    expect(visitor.reset).toBeNull();
    expect(client.openConnections).toBe(1);
  });
});

describe('closing a client with visitors', () => {
  it('lets the visitors finish within the drain time', async () => {
    const tunnel = await openEcho();
    const visitor = await visit(tunnel.tunnelId);
    const closed = client.close({ drainMs: 30_000 });
    visitor.say('last words');
    await eventually(() => expect(visitor.text).toBe('last words'));
    expect(client.state).toBe('closing');
    visitor.stream?.end();
    await closed;
    expect(visitor.ended).toBe(true);
    expect(visitor.reset).toBeNull();
  });

  it('cuts the visitors when the client is closed a second time', async () => {
    const tunnel = await openEcho();
    const visitor = await visit(tunnel.tunnelId);
    void client.close({ drainMs: 30_000 });
    await client.close();
    await eventually(() => expect(visitor.reset).not.toBeNull());
  });
});
