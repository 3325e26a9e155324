import { PassThrough } from 'node:stream';
import { eventually } from '@tunnel/testkit';
import { describe, expect, test } from 'vitest';
import {
  createLineRelay,
  createLogger,
  formatForPeople,
  isDetailLine,
  isLogLine,
  type LoggerOptions,
} from './logger.ts';

const KEY = 'tnl_0123456789abcdefghijABCDEFGHIJ01abcdef';

const logTo = (options: Partial<LoggerOptions> = {}) => {
  const stream = new PassThrough();
  const logger = createLogger({ stream, format: 'json', now: () => Date.UTC(2030, 0, 2), ...options });
  const text = async (): Promise<string> => {
    await logger.flush();
    // Newer versions of Node.js return a single chunk per read(); earlier versions return all buffered chunks.
    let taken = '';
    while (stream.readableLength > 0) taken += String(stream.read());
    return taken;
  };
  return { logger, stream, text };
};

describe('log lines', () => {
  test('are JSON with level, time, fields and message, one per line', async () => {
    const { logger, text } = logTo();
    logger.child({ session_id: 'ses_1' }).warn({ port: 1 }, 'at 100% of %s');
    logger.info({}, 'second');
    const [first = '', second = ''] = (await text()).split('\n');
    expect(JSON.parse(first)).toEqual({
      level: 'warn',
      time: '2030-01-02T00:00:00.000Z',
      session_id: 'ses_1',
      port: 1,
      msg: 'at 100% of %s',
    });
    expect(JSON.parse(second)).toMatchObject({ msg: 'second' });
  });

  test('below the log level are not written', async () => {
    const { logger, text } = logTo({ level: 'warn' });
    logger.info({}, 'no');
    logger.error({}, 'yes');
    expect(await text()).not.toContain('"no"');
    const silent = logTo({ level: 'silent' });
    silent.logger.error({}, 'no');
    expect(await silent.text()).toBe('');
  });

  test('contain no secret in fields, child fields or messages', async () => {
    const { logger, text } = logTo();
    logger.child({ token: 'hidden' }).info({ a: { group_key: 'hidden', note: KEY } }, `refused ${KEY}`);
    const written = await text();
    expect(written).not.toMatch(/hidden|0123456789abc/);
    expect(written).toContain('refused tnl_[secret]');
  });

  test('in the human format have no color outside a terminal', async () => {
    const { logger, text } = logTo({ format: 'human' });
    logger.info({ port: 4040 }, 'listening');
    expect(await text()).toBe('00:00:00 INFO  listening port=4040\n');
  });
});

describe('a logger with a stalled output', () => {
  test('buffers a bounded number of bytes and reports the dropped lines later', async () => {
    const { logger, stream } = logTo();
    const message = 'x'.repeat(1000);
    for (let line = 0; line < 5000; line += 1) logger.info({ line }, message);
    const { droppedLines } = logger;
    expect(droppedLines).toBeGreaterThan(3000);
    expect(droppedLines).toBeLessThan(4500);

    let text = '';
    stream.on('data', (chunk: Buffer) => (text += String(chunk)));
    await eventually(() => expect(text).toContain('log lines dropped'));
    logger.info({}, 'after');
    await logger.flush();
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { line?: number; dropped_lines?: number });
    const kept = lines.filter(({ line }) => line !== undefined);
    expect(kept.map(({ line }) => line)).toEqual(kept.map((_, index) => index));
    expect(kept.length + droppedLines).toBe(5000);
    expect(lines.find(({ dropped_lines }) => dropped_lines !== undefined)?.dropped_lines).toBe(droppedLines);
    expect(logger.droppedLines).toBe(droppedLines);
  });

  test('does not block flush()', async () => {
    const { logger, stream } = logTo();
    for (let line = 0; line < 200; line += 1) logger.info({}, 'x'.repeat(1000));
    await logger.flush();
    expect(stream.readableLength).toBeGreaterThan(0);
  });

  test('does not throw when the stream is destroyed, and counts the lines as dropped', async () => {
    const { logger, stream } = logTo();
    stream.destroy();
    logger.info({}, 'one');
    logger.info({}, 'two');
    await eventually(() => expect(logger.droppedLines).toBe(2));
  });
});

const line = (fields: object): string => JSON.stringify({ level: 'info', time: '2030-01-02T03:04:05.678Z', ...fields });

test('the human format is one line with time, level, message and fields', () => {
  expect(formatForPeople(line({ port: 4040, name: 'a b', msg: 'listening' }), false)).toBe(
    '03:04:05 INFO  listening port=4040 name="a b"\n',
  );
  expect(formatForPeople(line({ msg: 'ready' }), false)).toBe('03:04:05 INFO  ready\n');
});

test('the human format shows the message of an error, but no stack', () => {
  const err = { type: 'Error', message: 'no\nway', stack: 'Error: no\n  at x' };
  expect(formatForPeople(line({ err, msg: 'failed' }), false)).toBe('03:04:05 INFO  failed err="no\\nway"\n');
});

test('data in the human format cannot forge a line or control the terminal', () => {
  const text = formatForPeople(line({ name: '\u001b[2J\n\u009b', msg: 'a\nERROR forged\u001b[31m' }), false);
  expect(text.match(/\n/g)).toHaveLength(1);
  expect(text.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
});

test('data in the human format cannot change the text direction', () => {
  const text = formatForPeople(line({ reason: 'a\u202eb', label: '\u2066x', msg: 'down\u2028\u200f' }), false);
  expect(text).toBe('03:04:05 INFO  down?? reason="a?b" label="?x"\n');
});

test('the human format uses color only when requested', () => {
  expect(formatForPeople(line({ msg: 'x' }), true)).toContain('\u001b[36mINFO');
});

describe('lines of a child process', () => {
  // Reads all buffered lines: newer versions of Node.js return a single line per read().
  const taken = (stream: PassThrough): string => {
    let lines = '';
    while (stream.readableLength > 0) lines += String(stream.read());
    return lines;
  };
  const relayTo = (stream: PassThrough, format: LoggerOptions['format']) => createLineRelay({ stream, format });

  test('count as details if they report no problem', async () => {
    const { logger, text } = logTo();
    logger.info({ port: 1 }, 'open');
    const info = await text();
    const warning = info.replace('"info"', '"warn"');
    expect([info, warning, 'open\n', '{"level":"info", cut off\n'].map(isDetailLine)).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  test('are passed on as JSON or in the human format; text that is not a log line stays unchanged', async () => {
    const { logger, text } = logTo();
    logger.warn({ port: 1 }, 'taken');
    const warned = await text();
    expect([isLogLine(warned), isLogLine('{"level":"warn"\n'), isLogLine('Error: {"level":"warn"}\n')]).toEqual([
      true,
      false,
      false,
    ]);
    for (const [format, shown] of [
      ['json', warned],
      ['human', '00:00:00 WARN  taken port=1\n'],
    ] as const) {
      const stream = new PassThrough();
      const relay = relayTo(stream, format);
      relay.push(warned);
      relay.push('FATAL ERROR: out of memory\n');
      await relay.flush();
      expect(taken(stream)).toBe(`${shown}FATAL ERROR: out of memory\n`);
    }
  });

  test('stay unchanged if they only resemble a log line', async () => {
    const stream = new PassThrough();
    const relay = relayTo(stream, 'human');
    const odd = ['{"level":"warn","reason":"{a}\n', '{"level":"warn","a":1}}\n'];
    for (const looksLikeOne of odd) relay.push(looksLikeOne);
    await relay.flush();
    expect(taken(stream)).toBe(`${odd[0]}${odd[1]}`);
  });

  test('are buffered within bounds while the output is stalled, and dropped lines are reported', async () => {
    const stream = new PassThrough({ highWaterMark: 1024 });
    const flooding = relayTo(stream, 'json');
    const other = relayTo(stream, 'json');
    const long = `${'x'.repeat(9999)}\n`;
    for (let lines = 0; lines < 1000; lines += 1) flooding.push(long);
    other.push('of another\n');
    let read = '';
    stream.on('data', (piece: Buffer) => (read += String(piece)));
    await eventually(() => expect(read).toMatch(/\d+ log lines dropped/));
    expect(read.length).toBeLessThan(1_300_000);
    // A flood from one process does not displace lines from another process.
    expect(read).toContain('of another\n');
  });
});
