import { describe, expect, it } from 'vitest';
import { neverWaiting, TERMINAL_LAG_MAX_BYTES } from './terminal.ts';

/** Creates a terminal that reads nothing, with the given descriptor. */
const stalledTerminal = (fd: number) => {
  const blocking: boolean[] = [];
  return {
    blocking,
    isTTY: true,
    columns: 80,
    rows: 24,
    writableLength: 0,
    _handle: { fd, setBlocking: (isBlocking: boolean) => void blocking.push(isBlocking) },
    write(text: string): void {
      this.writableLength += text.length;
    },
  };
};

describe('the output to a terminal', () => {
  it('is written in the background, except if the shell shares the descriptor', () => {
    const [own, shared] = [stalledTerminal(22), stalledTerminal(1)];
    for (const terminal of [own, shared]) neverWaiting(terminal);
    expect([own.blocking, shared.blocking]).toEqual([[false], []]);
  });

  it('is bounded while the terminal does not read, and continues afterwards', () => {
    const terminal = stalledTerminal(22);
    const output = neverWaiting(terminal);
    for (let line = 0; line < 10_000; line += 1) output.write('x'.repeat(100));
    expect(terminal.writableLength).toBeLessThanOrEqual(TERMINAL_LAG_MAX_BYTES + 100);
    terminal.writableLength = 0;
    output.write('again');
    expect(terminal.writableLength).toBe(5);
  });

  it('has the current size of the window', () => {
    const terminal = stalledTerminal(22);
    const output = neverWaiting(terminal);
    terminal.columns = 120;
    expect([output.isTTY, output.columns, output.rows]).toEqual([true, 120, 24]);
  });

  it('is unchanged if it is a pipe', () => {
    const pipe = { write: () => {} };
    expect(neverWaiting(pipe)).toBe(pipe);
  });
});
