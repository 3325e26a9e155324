import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Fault } from './fault.ts';

describe('Fault', () => {
  it('fills the catalogue text with its values', () => {
    const fault = new Fault('TUNNEL_PORT_OUT_OF_RANGE', { port: 80, from: 20000, to: 20099 });
    expect(fault.message).toBe('port 80 is not allowed: use 20000-20099');
    expect(fault).toMatchObject({ name: 'Fault', code: 'TUNNEL_PORT_OUT_OF_RANGE', status: 400, retryable: false });
    expect(fault).toBeInstanceOf(Error);
  });

  it('leaves a placeholder without a value visible, and ignores inherited values', () => {
    expect(new Fault('TUNNEL_PORT_IN_USE').message).toBe('port {port} is already in use');
    const inherited = Object.create({ port: 1 }) as { port: number };
    expect(new Fault('TUNNEL_PORT_IN_USE', inherited).message).toBe('port {port} is already in use');
  });

  it('does not fill a value into another value, and ignores replacement patterns', () => {
    const fault = new Fault('TUNNEL_NAME_INVALID', { name: '{reason}$&$1', reason: 'too odd' });
    expect(fault.message).toBe('tunnel name `{reason}$&$1` is not valid: too odd');
  });

  it('has the next step from the catalogue', () => {
    expect(new Fault('TUNNEL_PORT_IN_USE', { port: 7 }).next).toBe(
      'Choose another port, or let the edge assign a free one.',
    );
  });

  it('keeps internal details out of its message', () => {
    const cause = new Error('password=hunter2');
    const fault = new Fault('INTERNAL', {}, { internal: 'query failed', cause });
    expect(fault.message).toBe('internal error');
    expect([fault.internal, fault.cause]).toEqual(['query failed', cause]);
    expect('cause' in new Fault('INTERNAL')).toBe(false);
  });
});

describe('a printed fault', () => {
  const cause = new Error('EADDRINUSE');
  const fault = new Fault('TUNNEL_PORT_IN_USE', { port: 7 }, { internal: 'from the wire', cause });

  it('shows message, next step and stack, without internal details', () => {
    const lines = inspect(fault).split('\n');
    expect(lines.slice(0, 2)).toEqual([
      'Fault [TUNNEL_PORT_IN_USE]: port 7 is already in use',
      '  Choose another port, or let the edge assign a free one.',
    ]);
    expect(lines[2]).toMatch(/^ {4}at .*fault\.test\.ts/);
    expect(lines.find((line) => line.includes('[cause]'))).toBe('  [cause]: Error: EADDRINUSE');
    expect(inspect({ type: 'tunnel-error', fault }, { breakLength: 1000 })).not.toContain('from the wire');
  });

  it('is a plain object in JSON', () => {
    expect(JSON.parse(JSON.stringify({ fault }))).toEqual({
      fault: {
        code: 'TUNNEL_PORT_IN_USE',
        message: 'port 7 is already in use',
        retryable: true,
        next: 'Choose another port, or let the edge assign a free one.',
      },
    });
  });
});

describe('Fault.fromWire', () => {
  it('keeps a known code with the received message', () => {
    const fault = Fault.fromWire('TUNNEL_PORT_IN_USE', 'port 20007 is already in use');
    expect([fault.code, fault.message, fault.retryable]).toEqual([
      'TUNNEL_PORT_IN_USE',
      'port 20007 is already in use',
      true,
    ]);
    expect(fault.next).not.toMatch(/[{}]/);
  });

  it('turns an unknown code into INTERNAL, and keeps the code for the log', () => {
    for (const code of ['SOMETHING_NEW', 'toString', '__proto__', '']) {
      const fault = Fault.fromWire(code, 'words from a later version');
      expect([fault.code, fault.message]).toEqual(['INTERNAL', 'words from a later version']);
      expect(fault.internal).toBe(`from the wire: ${code}`);
    }
  });

  it('does not fill placeholders in a received message', () => {
    expect(Fault.fromWire('TUNNEL_PORT_IN_USE', 'port {port}').message).toBe('port {port}');
  });
});

describe('Fault.from', () => {
  it('returns a fault unchanged', () => {
    const fault = new Fault('TUNNEL_UNKNOWN');
    expect(Fault.from(fault)).toBe(fault);
  });

  it('turns any other value into INTERNAL, and shows nothing of it', () => {
    const cause = new TypeError('x is undefined');
    const fault = Fault.from(cause);
    expect([fault.code, fault.internal, fault.cause]).toEqual(['INTERNAL', 'x is undefined', cause]);
    expect(fault.message).not.toContain('undefined');
    for (const thrown of ['a string', 7, null]) expect(Fault.from(thrown).internal).toBe(String(thrown));
  });
});
