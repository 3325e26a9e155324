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

/** Feeds events of [time, event] and gives the last state and the effects of the last step. */
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

describe('a session that is lost', () => {
  it('closes the listener and holds the port for 30 s', () => {
    const [state, effects] = run([0, registered('a', 20000)], [1000, lost()]);
    expect(effects).toEqual([
      { kind: 'close-endpoint', tunnelId: 'a', endpoint: at(20000) },
      { kind: 'hold-endpoint', tunnelId: 'a', endpoint: at(20000), until: 31_000 },
    ]);
    expect(state).toMatchObject({ kind: 'lost', until: 31_000 });
  });

  it('is held to the last millisecond, then frees the port and closes the entry with the time of the loss', () => {
    expect(run([0, registered('a', 20000)], [1000, lost()], [30_999, TIME])[1]).toEqual([]);
    const [state, effects] = run([0, registered('a', 20000)], [1000, lost()], [31_000, TIME]);
    expect(state.kind).toBe('ended');
    expect(effects).toEqual([
      { kind: 'release-endpoint', tunnelId: 'a', endpoint: at(20000) },
      { kind: 'tunnel-closed', tunnelId: 'a', at: 1000 },
      { kind: 'forget-session' },
    ]);
  });

  it('takes its tunnel up again under the same port without a new entry', () => {
    const [state, effects] = run(
      [0, registered('a', 20000)],
      [1000, lost()],
      [5000, resumed(2)],
      [5100, registered('a', 20000, 2)],
    );
    expect(effects).toEqual([{ kind: 'list-tunnel', tunnelId: 'a', endpoint: at(20000) }]);
    expect(state).toMatchObject({ kind: 'live', connectionId: 2 });
  });

  it('gives the held port back when the tunnel returns on another one', () => {
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

  it('closes what the returned client does not claim within 30 s of its return', () => {
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

  it('keeps the time of the first loss for a tunnel that is lost again before it was claimed', () => {
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

describe('a resume while the old socket is still believed in', () => {
  it('replaces the connection in one step: no tunnel leaves', () => {
    const [state, effects] = run([0, registered('a', 20000)], [1000, resumed(2)]);
    expect(effects).toEqual([{ kind: 'replace-connection', connectionId: 1 }]);
    expect(state).toMatchObject({ kind: 'live', connectionId: 2, tunnels: [{ kind: 'live' }] });
  });

  it('ignores the late close of the old socket', () => {
    const [state, effects] = run([0, registered('a', 20000)], [1000, resumed(2)], [1001, lost(1)]);
    expect(effects).toEqual([]);
    expect(state).toMatchObject({ kind: 'live', connectionId: 2 });
  });

  it('goes on when the tunnel is claimed, and closes it after 30 s when it is not', () => {
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

describe('an end on purpose', () => {
  it('holds nothing: unregistered, or the whole session', () => {
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

  it('ends a session that is away with the time of its loss', () => {
    const [, effects] = run([0, registered('a', 20000)], [1000, lost()], [2000, { kind: 'session-ended' }]);
    expect(effects).toContainEqual({ kind: 'tunnel-closed', tunnelId: 'a', at: 1000 });
  });
});

describe('a listener that opens too late', () => {
  it('is closed and its port released when the session ended or was lost meanwhile', () => {
    const undone = [
      { kind: 'close-endpoint', tunnelId: 'a', endpoint: at(20000) },
      { kind: 'release-endpoint', tunnelId: 'a', endpoint: at(20000) },
    ];
    expect(run([0, { kind: 'session-ended' }], [1, registered('a', 20000)])[1]).toEqual(undone);
    expect(run([0, lost()], [1, registered('a', 20000)])[1]).toEqual(undone);
    expect(run([0, resumed(2)], [1, registered('a', 20000, 1)])[1]).toEqual(undone);
  });

  it('goes back to being held when the tunnel was held before', () => {
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
