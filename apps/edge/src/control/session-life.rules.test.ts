import type { PublicEndpoint } from '@tunnel/rules/tunnels';
import { describe, expect, it } from 'vitest';
import {
  type SessionEffect,
  type SessionEvent,
  type SessionState,
  startSession,
  transitionSession,
} from './session-life.rules.ts';

const RULES = { windowMs: 30_000 };

/** Feeds the events at the given times. Returns the last state and the effects of the last event. */
const run = (...steps: readonly (readonly [number, SessionEvent])[]): [SessionState, readonly SessionEffect[]] => {
  let state = startSession(1);
  let effects: readonly SessionEffect[] = [];
  for (const [now, event] of steps) [state, effects] = transitionSession(state, event, now, RULES);
  return [state, effects];
};

const at = (port: number): PublicEndpoint => ({ kind: 'port', transport: 'tcp', port });
const registered = (tunnelId: string, port: number, connectionId = 1): SessionEvent => ({
  kind: 'tunnel-registered',
  connectionId,
  tunnelId,
  endpoint: at(port),
});
const lost = (connectionId = 1): SessionEvent => ({ kind: 'connection-lost', connectionId });
const resumed = (connectionId: number): SessionEvent => ({ kind: 'resumed', connectionId });
const ended = (tunnelId: string): SessionEvent => ({ kind: 'tunnel-ended', tunnelId });
const TIME: SessionEvent = { kind: 'time-passed' };

describe('a lost session', () => {
  it('closes the listener and holds the port for 30 s', () => {
    const [state, effects] = run([0, registered('a', 20000)], [1000, lost()]);
    expect(effects).toEqual([
      { kind: 'close-endpoint', tunnelId: 'a', endpoint: at(20000) },
      { kind: 'hold-endpoint', tunnelId: 'a', endpoint: at(20000), until: 31_000 },
    ]);
    expect(state).toMatchObject({ kind: 'lost', until: 31_000 });
  });

  it('is held for exactly 30 s, then frees the port and closes the record with the time of the loss', () => {
    expect(run([0, registered('a', 20000)], [1000, lost()], [30_999, TIME])[1]).toEqual([]);
    const [state, effects] = run([0, registered('a', 20000)], [1000, lost()], [31_000, TIME]);
    expect(state.kind).toBe('ended');
    expect(effects).toEqual([
      { kind: 'release-endpoint', tunnelId: 'a', endpoint: at(20000) },
      { kind: 'tunnel-closed', tunnelId: 'a', at: 1000 },
      { kind: 'forget-session' },
    ]);
  });

  it('resumes its tunnel on the same port without a new record', () => {
    const [state, effects] = run(
      [0, registered('a', 20000)],
      [1000, lost()],
      [5000, resumed(2)],
      [5100, registered('a', 20000, 2)],
    );
    expect(effects).toEqual([{ kind: 'list-tunnel', tunnelId: 'a', endpoint: at(20000) }]);
    expect(state).toMatchObject({ kind: 'live', connectionId: 2 });
  });

  it('releases the held port when the tunnel returns on another port', () => {
    const [, effects] = run(
      [0, registered('a', 20000)],
      [1000, lost()],
      [5000, resumed(2)],
      [5100, registered('a', 20007, 2)],
    );
    expect(effects).toEqual([
      { kind: 'release-endpoint', tunnelId: 'a', endpoint: at(20000) },
      { kind: 'list-tunnel', tunnelId: 'a', endpoint: at(20007) },
    ]);
  });

  it('closes a tunnel that the returned client does not register again within 30 s', () => {
    const steps = [
      [0, registered('a', 20000)],
      [0, registered('b', 20001)],
      [1000, lost()],
      [29_000, resumed(2)],
      [29_100, registered('b', 20001, 2)],
    ] as const;
    expect(run(...steps, [58_999, TIME])[1]).toEqual([]);
    const [state, effects] = run(...steps, [59_000, TIME]);
    expect(effects).toEqual([
      { kind: 'release-endpoint', tunnelId: 'a', endpoint: at(20000) },
      { kind: 'tunnel-closed', tunnelId: 'a', at: 1000 },
    ]);
    expect(state).toMatchObject({ kind: 'live', tunnels: [{ tunnelId: 'b', kind: 'live' }] });
  });

  it('keeps the time of the first loss for a tunnel lost again before it was registered', () => {
    const [, effects] = run(
      [0, registered('a', 20000)],
      [1000, lost()],
      [5000, resumed(2)],
      [6000, lost(2)],
      [36_000, TIME],
    );
    expect(effects).toContainEqual({ kind: 'tunnel-closed', tunnelId: 'a', at: 1000 });
  });
});

describe('a resume while the old connection is open', () => {
  it('replaces the connection in one step without closing the tunnel', () => {
    const [state, effects] = run([0, registered('a', 20000)], [1000, resumed(2)]);
    expect(effects).toEqual([{ kind: 'replace-connection', connectionId: 1 }]);
    expect(state).toMatchObject({ kind: 'live', connectionId: 2, tunnels: [{ kind: 'live' }] });
  });

  it('ignores the late close of the old connection', () => {
    const [state, effects] = run([0, registered('a', 20000)], [1000, resumed(2)], [1001, lost(1)]);
    expect(effects).toEqual([]);
    expect(state).toMatchObject({ kind: 'live', connectionId: 2 });
  });

  it('keeps a tunnel that is registered again, and closes it after 30 s otherwise', () => {
    const claimed = run([0, registered('a', 20000)], [1000, resumed(2)], [2000, registered('a', 20000, 2)]);
    expect(claimed[1]).toEqual([{ kind: 'list-tunnel', tunnelId: 'a', endpoint: at(20000) }]);
    expect(transitionSession(claimed[0], TIME, 99_000, RULES)[1]).toEqual([]);
    const [, effects] = run([0, registered('a', 20000)], [1000, resumed(2)], [31_000, TIME]);
    expect(effects).toEqual([
      { kind: 'close-endpoint', tunnelId: 'a', endpoint: at(20000) },
      { kind: 'release-endpoint', tunnelId: 'a', endpoint: at(20000) },
      { kind: 'tunnel-closed', tunnelId: 'a', at: 1000 },
    ]);
  });
});

describe('an intended end', () => {
  it('of a tunnel or a session holds no port', () => {
    expect(run([0, registered('a', 20000)], [500, ended('a')])[1]).toEqual([
      { kind: 'close-endpoint', tunnelId: 'a', endpoint: at(20000) },
      { kind: 'release-endpoint', tunnelId: 'a', endpoint: at(20000) },
      { kind: 'tunnel-closed', tunnelId: 'a', at: 500 },
    ]);
    const [state, effects] = run([0, registered('a', 20000)], [500, { kind: 'session-ended' }]);
    expect(state).toEqual({ kind: 'ended' });
    expect(effects.map(({ kind }) => kind)).toEqual([
      'close-endpoint',
      'release-endpoint',
      'tunnel-closed',
      'forget-session',
    ]);
  });

  it('of a lost session closes its tunnel with the time of the loss', () => {
    const [, effects] = run([0, registered('a', 20000)], [1000, lost()], [2000, { kind: 'session-ended' }]);
    expect(effects).toContainEqual({ kind: 'tunnel-closed', tunnelId: 'a', at: 1000 });
  });
});

describe('a listener that opens too late', () => {
  it('is closed and its port released if the session has ended, was lost or was resumed meanwhile', () => {
    const undone = [
      { kind: 'close-endpoint', tunnelId: 'a', endpoint: at(20000) },
      { kind: 'release-endpoint', tunnelId: 'a', endpoint: at(20000) },
    ];
    expect(run([0, { kind: 'session-ended' }], [1, registered('a', 20000)])[1]).toEqual(undone);
    expect(run([0, lost()], [1, registered('a', 20000)])[1]).toEqual(undone);
    expect(run([0, resumed(2)], [1, registered('a', 20000, 1)])[1]).toEqual(undone);
  });

  it('is closed and its port held again if the port was held before', () => {
    const [, effects] = run(
      [0, registered('a', 20000)],
      [1, lost()],
      [2, resumed(2)],
      [3, lost(2)],
      [4, registered('a', 20000, 2)],
    );
    expect(effects).toEqual([
      { kind: 'close-endpoint', tunnelId: 'a', endpoint: at(20000) },
      { kind: 'hold-endpoint', tunnelId: 'a', endpoint: at(20000), until: 30_003 },
    ]);
  });
});
