import { describe, expect, it } from 'vitest';
import { type ReadinessFacts, readiness } from './readiness.rules.ts';

const tunnel = (
  name: string,
  state: ReadinessFacts['tunnels'][number]['state'],
  source: ReadinessFacts['tunnels'][number]['source'] = 'file',
) => ({ name, state, source });

describe('client readiness', () => {
  it('is true when the client is connected and every tunnel from its file or flags is open', () => {
    const tunnels = [tunnel('web', 'open'), tunnel('ssh', 'open', 'flags')];
    expect(readiness({ state: 'connected', tunnels })).toEqual({ ready: true });
    expect(readiness({ state: 'connected', tunnels: [] })).toEqual({ ready: true });
  });

  it.each(['connecting', 'reconnecting', 'closing', 'closed'] as const)('is false while the client is %s', (state) => {
    const tunnels = [tunnel('web', 'open')];
    expect(readiness({ state, tunnels })).toEqual({ ready: false, reason: `the client is ${state}` });
  });

  it('lists the tunnels that are not open yet, with their state', () => {
    const tunnels = [tunnel('web', 'open'), tunnel('ssh', 'refused'), tunnel('dns', 'opening', 'flags')];
    expect(readiness({ state: 'connected', tunnels })).toEqual({
      ready: false,
      reason: 'ssh is refused, dns is opening',
    });
  });

  it('does not wait for tunnels that were added at run time', () => {
    const tunnels = [tunnel('web', 'open'), tunnel('a', 'opening', 'runtime'), tunnel('b', 'refused', 'mcp')];
    expect(readiness({ state: 'connected', tunnels })).toEqual({ ready: true });
  });

  it('does not wait for a removed tunnel that is still draining', () => {
    const tunnels = [tunnel('web', 'open'), tunnel('gone', 'closing')];
    expect(readiness({ state: 'connected', tunnels })).toEqual({ ready: true });
  });

  it('gives a short one-line reason for 200 tunnels that are still opening: five names and a count', () => {
    const tunnels = Array.from({ length: 200 }, (_, index) => tunnel(`t${index}`, 'opening'));
    const answer = readiness({ state: 'connected', tunnels });
    expect(answer).toMatchObject({
      ready: false,
      reason: expect.stringMatching(/t4 is opening, 195 more are not open$/),
    });
  });
});
